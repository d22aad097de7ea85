//! The checks that all messages to a debate share: whether one was recorded before, and whether it
//! can still be used.

use concord_events::{AnswerSetAside, DebateEvent, DebateOpened, Heard};
use concord_wire::payload::{Answer, SetAsideReason};
use concord_wire::{AgentId, ErrorCode, Fault, MessageId};

use super::input::AnswerMessage;
use super::state::DebateState;
use crate::aggregates::heard_before::repeated;
use crate::machine::Decision;

/// What to do about a message whose id its sender has used before; `None` for a new id. The digest is that of the payload.
pub(super) fn repetition(
    state: &DebateState,
    agent_id: &AgentId,
    message_id: &MessageId,
    digest: &str,
) -> Option<Decision<DebateEvent>> {
    let known = state.seen.get(&(message_id.clone(), agent_id.clone()))?;
    Some(repeated(known, digest))
}

/// Why an answer of a party cannot be used; `None` if it can.
pub(super) fn unusable(state: &DebateState, message: &AnswerMessage) -> Option<SetAsideReason> {
    let is_to_earlier_question = message
        .question_sequence
        .is_some_and(|sequence| sequence < state.round_sequence);
    let is_of_earlier_round = message
        .round
        .is_some_and(|round| round > 0 && round < state.round);
    if state.outcome.is_some() || is_to_earlier_question || is_of_earlier_round {
        return Some(SetAsideReason::Late);
    }
    let has_answered = state
        .answers
        .iter()
        .any(|answer| answer.agent_id == message.agent_id);
    has_answered.then_some(SetAsideReason::Repeated)
}

/// The fault of an answer that names the question of the round that is open, and another round.
pub(super) fn wrong_round(state: &DebateState, message: &AnswerMessage) -> Option<Fault> {
    let names_question = message.question_sequence == Some(state.round_sequence);
    let other = message
        .round
        .filter(|round| *round > 0 && *round < state.round)?;
    (state.outcome.is_none() && names_question).then(|| {
        Fault::invalid(
            "/round",
            format!(
                "It answers the question of round {}, and says that it is of round {other}.",
                state.round
            ),
            "Give the round that stands in the question, or leave it out.",
        )
    })
}

/// Records a late or repeated answer, if the policy leaves room for it.
pub(super) fn set_aside(
    state: &DebateState,
    opened: &DebateOpened,
    message: Heard,
    answer: Answer,
    reason: SetAsideReason,
) -> Decision<DebateEvent> {
    if state.set_aside.len() >= opened.policy.set_aside_max as usize {
        return Decision::Reject(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            "This debate has recorded as many late and repeated answers as its policy allows.",
            "Give one answer to each question, before its deadline.",
        ));
    }
    Decision::Append(DebateEvent::AnswerSetAside(AnswerSetAside {
        case_id: opened.case_id.clone(),
        agent_id: message.agent_id,
        message_id: message.message_id,
        digest: message.digest,
        answer,
        reason,
    }))
}
