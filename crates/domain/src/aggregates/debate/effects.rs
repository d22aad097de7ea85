//! The effects of the events of a debate.

use concord_events::{DebateEvent, ReceivedAnswer, StoredEvent};
use concord_wire::payload::Answer;
use concord_wire::payload::notification::DebateResolved;
use concord_wire::{AgentId, DebateId};

use super::memory_sync;
use crate::effect::{Effect, Round};
use crate::rules::precedent;

pub(super) fn effects(record: &StoredEvent<DebateEvent>) -> Vec<Effect> {
    match &record.event {
        DebateEvent::Opened(opened) if opened.sync_until.is_some() => opened
            .sync_until
            .map(|until| memory_sync::asks(opened, until))
            .unwrap_or_default(),
        DebateEvent::Synced(synced) => memory_sync::begins(synced, record.sequence),
        DebateEvent::Opened(opened) => Round {
            case_id: &opened.case_id,
            conflict: &opened.conflict,
            round: 1,
            rounds_max: opened.policy.rounds_max,
            tokens_max: opened.policy.tokens_per_message_max,
            asked: &opened.asked,
            due: opened.due.unwrap_or(record.meta.at),
            guidance: precedent::guidance_of(opened, &opened.conflict.positions).as_ref(),
            added_context: opened.terms.added_context.as_deref(),
            dependants: &opened.terms.dependants,
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
            guidance: None,
            added_context: closed.added_context.as_deref(),
            dependants: &[],
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

/// What the other parties are told of the answer that an event brings.
pub(super) fn answer_told(debate_id: &DebateId, event: &DebateEvent) -> Vec<Effect> {
    let Some((received, heard_by)) = event
        .answer()
        .and_then(|received| Some((received, received.heard_by.as_ref()?)))
    else {
        return Vec::new();
    };
    let tell = |to: &AgentId, agrees| Effect::TellAnswer {
        to: to.clone(),
        debate_id: debate_id.clone(),
        round: received.round,
        agrees,
        answer: Box::new(told(received, agrees)),
    };
    let agreed = heard_by.agreed_with.iter().map(|to| tell(to, true));
    let disagreed = heard_by.disagreed_with.iter().map(|to| tell(to, false));
    agreed.chain(disagreed).collect()
}

/// An answer in the specification's form, as a party is told it: the position, also where the answer
/// said only with whom it agrees, and whether it agrees with that party.
fn told(received: &ReceivedAnswer, agrees: bool) -> Answer {
    let position = &received.position;
    Answer {
        revised_position: Some(position.position.clone()),
        value: position.value.clone(),
        confidence: Some(position.confidence),
        agrees_with_peer: Some(agrees),
        answered_by: Some(received.agent_id.clone()),
        ..received.answer.clone()
    }
}
