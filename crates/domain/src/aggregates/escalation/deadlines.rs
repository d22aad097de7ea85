//! Climbing: what a debate waits for on the level that it enters, and what the passing of a deadline means.

use concord_events::names::{
    ACKNOWLEDGE, COMPARE, EVALUATION, EVIDENCE, HALF, MEDIATION, NEARLY, PERSON, PROVISIONAL,
};
use concord_events::{
    AwaitsGate, Deadline, DeadlineElapsed, DebateEvent, DebateOpened, DiscussionEnded, Escalated,
    EscalationReason, Heard, MediatorAsked, QueueEntry, Reminded,
};
use concord_wire::payload::{Level, Mediation, Position, Status};

use super::fallback::Because;
use super::{Ladder, fallback, mediate, named, parties};
use crate::aggregates::debate::{DebateState, Resolving};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::calendar;

type DebateDecision = Decision<DebateEvent>;

/// From where a debate climbs, and with what.
pub(crate) struct Climb<'a> {
    pub(crate) from: Level,
    pub(crate) reason: EscalationReason,
    pub(crate) positions: &'a [Position],
    pub(crate) heard: Option<Heard>,
    pub(crate) discussion: Option<DiscussionEnded>,
    pub(crate) mediation: Option<Mediation>,
}

/// The fact that a debate enters the next level: mediation after the agents, a person after mediation.
pub(crate) fn climb(opened: &DebateOpened, context: &Context, climb: Climb<'_>) -> DebateEvent {
    let to = if climb.from == Level::Agents {
        Level::Mediation
    } else {
        Level::Person
    };
    let (mediator, queue, waits_for) = if to == Level::Mediation {
        let (mediator, waits_for) = to_mediation(opened, context, climb.positions);
        (mediator, None, waits_for)
    } else {
        let (queue, waits_for) = to_person(opened, context);
        (None, Some(queue), waits_for)
    };
    DebateEvent::Escalated(Box::new(Escalated {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        from: climb.from,
        to,
        reason: climb.reason,
        heard: climb.heard,
        discussion: climb.discussion,
        mediation: climb.mediation,
        mediator,
        queue,
        waits_for,
    }))
}

fn to_mediation(
    opened: &DebateOpened,
    context: &Context,
    positions: &[Position],
) -> (Option<MediatorAsked>, Vec<Deadline>) {
    let ladder = &opened.policy.ladder;
    let times = ladder.times_of(opened.terms.priority);
    // A party's opinion is known already.
    let mediator = ladder
        .mediator
        .as_ref()
        .filter(|agent| !parties(opened).contains(agent));
    let wait = if mediator.is_some() {
        ladder.scaled(times.opinion_ms)
    } else {
        0
    };
    let compare = context.now.plus_millis(wait);
    let waits_for = vec![
        named(COMPARE, compare),
        named(
            MEDIATION,
            context.now.plus_millis(ladder.scaled(times.mediation_ms)),
        ),
    ];
    let asked = mediator.map(|mediator| MediatorAsked {
        mediator: mediator.clone(),
        positions: positions.to_vec(),
        due: compare,
    });
    (asked, waits_for)
}

fn to_person(opened: &DebateOpened, context: &Context) -> (QueueEntry, Vec<Deadline>) {
    let ladder = &opened.policy.ladder;
    let time = ladder.scaled(ladder.times_of(opened.terms.priority).person_ms);
    let hours = ladder.working_hours();
    let due = calendar::due(context.now, time, hours);
    let waits_for = vec![
        named(HALF, calendar::fraction(context.now, due, 0.5, hours)),
        named(NEARLY, calendar::fraction(context.now, due, 0.9, hours)),
        named(PERSON, due),
    ];
    let entry = QueueEntry {
        priority: opened.terms.priority,
        domain: opened.terms.domain.clone(),
        excluded: parties(opened),
        due,
        overflow: ladder.overflow,
        queue_max: ladder.queue_max,
    };
    (entry, waits_for)
}

/// The debate climbs from the level that it is on.
pub(super) fn escalated(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    reason: EscalationReason,
    heard: Option<Heard>,
) -> DebateDecision {
    let from = Climb {
        from: ladder.level,
        reason,
        positions: &state.positions,
        heard,
        discussion: None,
        mediation: None,
    };
    Decision::Append(climb(opened, context, from))
}

/// A deadline of the ladder has passed.
pub(crate) fn elapsed(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    deadline: &DeadlineElapsed,
) -> DebateDecision {
    let name = deadline.name.as_str();
    if state.outcome.is_some() || ladder.due(name) != Some(deadline.due) {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    let climbs = |reason| escalated(state, opened, ladder, context, reason, None);
    match name {
        // Two deadlines that are both over may be heard of in either order: what was missed first is the reason.
        EVIDENCE
            if ladder
                .due(ACKNOWLEDGE)
                .is_some_and(|first| first <= deadline.due) =>
        {
            climbs(EscalationReason::Unacknowledged)
        }
        ACKNOWLEDGE => climbs(EscalationReason::Unacknowledged),
        EVIDENCE => climbs(EscalationReason::NoEvidence),
        EVALUATION => climbs(EscalationReason::NotEvaluated),
        MEDIATION => climbs(EscalationReason::MediationOverdue),
        COMPARE => Decision::Append(mediate::conclude(state, opened, ladder, context)),
        HALF => Decision::Append(reminded(opened, ladder, 50)),
        NEARLY => Decision::Append(reminded(opened, ladder, 90)),
        PERSON => Decision::Append(fallback::fell_back(
            state,
            opened,
            context,
            Because::NobodyRuled,
        )),
        PROVISIONAL => Decision::Append(window_closed(state, opened, ladder, context)),
        _ => Decision::Ignore(Ignored::DeadlineNotOpen),
    }
}

fn reminded(opened: &DebateOpened, ladder: &Ladder, percent: u8) -> DebateEvent {
    // A reminder that was overtaken by the next one is not given any more.
    let passed: &[&str] = if percent < 90 {
        &[HALF]
    } else {
        &[HALF, NEARLY]
    };
    DebateEvent::Reminded(Reminded {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        expert: ladder.expert.clone(),
        contact: ladder.contact.clone(),
        percent,
        due: ladder.due(PERSON).unwrap_or_default(),
        waits_for: ladder.without(passed),
    })
}

/// The provisional decision has stood for its time: the gate reviews it, and where there is none it becomes final.
fn window_closed(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
) -> DebateEvent {
    match &opened.terms.gate {
        Some(gate) => DebateEvent::AwaitsGate(AwaitsGate {
            case_id: opened.case_id.clone(),
            topic: opened.conflict.topic.clone(),
            gate: gate.clone(),
        }),
        None => {
            let resolution = ladder
                .provisional
                .as_ref()
                .and_then(|provisional| provisional.resolution.clone());
            Resolving::of(opened, Status::Fallback, Level::Fallback, resolution)
                .event(state, context)
        }
    }
}
