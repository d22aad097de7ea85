//! The effects of the events of a debate.

use concord_events::{DebateEvent, StoredEvent};
use concord_wire::payload::notification::DebateResolved;

use crate::effect::{Effect, Round};

pub(super) fn effects(record: &StoredEvent<DebateEvent>) -> Vec<Effect> {
    match &record.event {
        DebateEvent::Opened(opened) => Round {
            case_id: &opened.case_id,
            conflict: &opened.conflict,
            round: 1,
            rounds_max: opened.policy.rounds_max,
            tokens_max: opened.policy.tokens_per_message_max,
            asked: &opened.asked,
            due: opened.due.unwrap_or(record.meta.at),
        }
        .questions(),
        DebateEvent::RoundClosed(closed) => Round {
            case_id: &closed.case_id,
            conflict: &closed.conflict,
            round: closed.next_round,
            rounds_max: closed.rounds_max,
            tokens_max: closed.tokens_per_message_max,
            asked: &closed.asked,
            due: closed.due,
        }
        .questions(),
        DebateEvent::AnswerSetAside(aside) => vec![Effect::ReportSetAside {
            to: aside.agent_id.clone(),
            message_id: aside.message_id.clone(),
            reason: aside.reason,
            what: "answer",
        }],
        DebateEvent::Resolved(resolved) => vec![Effect::tell_all(DebateResolved {
            topic: resolved.topic.clone(),
            outcome: resolved.outcome.clone(),
        })],
        // The effects of the events of the ladder are made there.
        _ => Vec::new(),
    }
}
