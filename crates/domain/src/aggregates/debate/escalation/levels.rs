//! Going up a level: whom the next level asks, and what it waits for.

use concord_events::names::{COMPARE, HALF, MEDIATION, NEARLY, PERSON};
use concord_events::{
    Deadline, DebateEvent, DebateOpened, DiscussionEnded, Escalated, EscalationReason, Heard,
    MediatorAsked, QueueEntry,
};
use concord_wire::payload::{Level, Mediation, Position};

use super::{OnLadder, named, parties};
use crate::machine::{Context, Decision};
use crate::rules::calendar;

/// From which level a debate goes up, and why.
pub(in crate::aggregates::debate) struct Escalation<'a> {
    pub(in crate::aggregates::debate) from: Level,
    pub(in crate::aggregates::debate) reason: EscalationReason,
    pub(in crate::aggregates::debate) positions: &'a [Position],
    /// The message that is the reason, where one is.
    pub(in crate::aggregates::debate) message: Option<Heard>,
    /// The discussion that has ended, where there was one.
    pub(in crate::aggregates::debate) discussion: Option<DiscussionEnded>,
    /// The result of mediation, where it took place.
    pub(in crate::aggregates::debate) mediation: Option<Mediation>,
}

/// The event by which a debate enters the next level: mediation after the agents, a person after
/// mediation.
pub(in crate::aggregates::debate) fn escalate(
    opened: &DebateOpened,
    context: &Context,
    escalation: Escalation<'_>,
) -> DebateEvent {
    debug_assert!(
        escalation.from <= Level::Mediation,
        "from level {} a debate falls back instead",
        escalation.from
    );
    let to = if escalation.from == Level::Agents {
        Level::Mediation
    } else {
        Level::Person
    };
    let (mediator, queue, waits_for) = if to == Level::Mediation {
        let (mediator, waits_for) = enter_mediation(opened, context, escalation.positions);
        (mediator, None, waits_for)
    } else {
        let (queue, waits_for) = enter_person(opened, context);
        (None, Some(queue), waits_for)
    };
    DebateEvent::Escalated(Box::new(Escalated {
        case_id: opened.case_id.clone(),
        topic: opened.conflict.topic.clone(),
        from: escalation.from,
        to,
        reason: escalation.reason,
        heard: escalation.message,
        discussion: escalation.discussion,
        mediation: escalation.mediation,
        mediator,
        queue,
        waits_for,
    }))
}

fn enter_mediation(
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

fn enter_person(opened: &DebateOpened, context: &Context) -> (QueueEntry, Vec<Deadline>) {
    let ladder = &opened.policy.ladder;
    let time = ladder.scaled(ladder.times_of(opened.terms.priority).person_ms);
    let hours = ladder.working_hours();
    let due = calendar::due(context.now, time, hours);
    let waits_for = vec![
        named(HALF, calendar::fraction(context.now, due, 0.5, hours)),
        named(NEARLY, calendar::fraction(context.now, due, 0.9, hours)),
        named(PERSON, due),
    ];
    debug_assert!(
        waits_for.is_sorted_by_key(|deadline| deadline.due),
        "reminders come before the end of the time"
    );
    let entry = QueueEntry {
        priority: opened.terms.priority,
        opened_by: opened.terms.opened_by.clone(),
        domain: opened.terms.domain.clone(),
        excluded: parties(opened),
        due,
        overflow: ladder.overflow,
        queue_max: ladder.queue_max,
    };
    (entry, waits_for)
}

/// Takes a debate up from the level that it is on, because of `message` where there is one.
pub(super) fn escalated(
    on: &OnLadder<'_>,
    reason: EscalationReason,
    message: Option<Heard>,
) -> Decision<DebateEvent> {
    let escalation = Escalation {
        from: on.ladder.level,
        reason,
        positions: &on.state.positions,
        message,
        discussion: None,
        mediation: None,
    };
    Decision::Append(escalate(on.opened, on.context, escalation))
}
