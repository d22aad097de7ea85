//! What a debate on the ladder does when one of its deadlines has passed.

use concord_events::names::{
    ACKNOWLEDGE, COMPARE, EVALUATION, EVIDENCE, HALF, MEDIATION, NEARLY, PERSON, PROVISIONAL,
};
use concord_events::{AwaitsGate, DeadlineElapsed, DebateEvent, EscalationReason, Reminded};
use concord_wire::payload::{Level, Status};

use super::fallback::{self, FallbackReason};
use super::{OnLadder, levels, mediation};
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::machine::{Decision, Ignored};
use crate::rules::calendar;

/// What to do about a deadline that has passed.
pub(in crate::aggregates::debate) fn elapsed(
    on: &OnLadder<'_>,
    deadline: &DeadlineElapsed,
) -> Decision<DebateEvent> {
    let name = deadline.name.as_str();
    if on.is_resolved() || on.ladder.due(name) != Some(deadline.due) {
        return Decision::Ignore(Ignored::DeadlineNotOpen);
    }
    let escalate = |reason| levels::escalated(on, reason, None);
    match name {
        // Two deadlines that are both over may be heard of in either order: what was missed first
        // is the reason.
        EVIDENCE
            if on
                .ladder
                .due(ACKNOWLEDGE)
                .is_some_and(|first| first <= deadline.due) =>
        {
            escalate(EscalationReason::Unacknowledged)
        }
        ACKNOWLEDGE => escalate(EscalationReason::Unacknowledged),
        EVIDENCE => escalate(EscalationReason::NoEvidence),
        EVALUATION => escalate(EscalationReason::NotEvaluated),
        MEDIATION => escalate(EscalationReason::MediationOverdue),
        COMPARE => Decision::Append(mediation::conclude(on)),
        HALF => Decision::Append(reminded(on, 50)),
        NEARLY => Decision::Append(reminded(on, 90)),
        PERSON => Decision::Append(fallback::fell_back(on, FallbackReason::NobodyRuled)),
        PROVISIONAL => Decision::Append(window_closed(on)),
        _ => Decision::Ignore(Ignored::DeadlineNotOpen),
    }
}

fn reminded(on: &OnLadder<'_>, percent: u8) -> DebateEvent {
    debug_assert!(
        on.ladder.level == Level::Person,
        "only a person is reminded"
    );
    // A reminder that was overtaken by the next one is not given any more.
    let passed: &[&str] = if percent < 90 {
        &[HALF]
    } else {
        &[HALF, NEARLY]
    };
    DebateEvent::Reminded(Reminded {
        case_id: on.opened.case_id.clone(),
        topic: on.opened.conflict.topic.clone(),
        expert: on.ladder.expert.clone(),
        contact: on.ladder.contact.clone(),
        percent,
        returns: lies(on),
        due: on.ladder.due(PERSON).unwrap_or_default(),
        waits_for: on.ladder.without(passed),
    })
}

/// Whether the expert has let the debate lie for about as long as is left for it: half of the time
/// that there was when they were given it. A tenth less counts, because they are given it a moment
/// after its time has begun. Who has had no working time has let nothing lie. Cases of earlier versions, which name no opener, keep their experts.
fn lies(on: &OnLadder<'_>) -> bool {
    let (Some(since), Some(due)) = (on.ladder.expert_since, on.ladder.due(PERSON)) else {
        return false;
    };
    let hours = on.opened.policy.ladder.working_hours();
    let had = calendar::open_millis(since, on.context.now, hours);
    let left = calendar::open_millis(on.context.now, due, hours);
    on.opened.terms.opened_by.is_some()
        && on.ladder.expert.is_some()
        && had > 0
        && had.saturating_mul(10) >= left.saturating_mul(9)
}

/// The provisional decision has stood for its time: the gate reviews it, and where there is none it
/// becomes final.
fn window_closed(on: &OnLadder<'_>) -> DebateEvent {
    debug_assert!(
        on.ladder.provisional.is_some(),
        "only a provisional decision has a window"
    );
    match &on.opened.terms.gate {
        Some(gate) => DebateEvent::AwaitsGate(AwaitsGate {
            case_id: on.opened.case_id.clone(),
            topic: on.opened.conflict.topic.clone(),
            gate: gate.clone(),
        }),
        None => {
            let resolution = on
                .ladder
                .provisional
                .as_ref()
                .and_then(|provisional| provisional.resolution.clone());
            OutcomeBuilder::new(on.opened, Status::Fallback, Level::Fallback, resolution)
                .event(on.state, on.context)
        }
    }
}
