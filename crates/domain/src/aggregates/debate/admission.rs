//! The checks that all messages to a debate share: whether one was recorded before, and whether it
//! can still be used.

use concord_events::{AnswerSetAside, DebateEvent, DebateOpened, Heard};
use concord_wire::payload::{Answer, SetAsideReason};
use concord_wire::{AgentId, ErrorCode, Fault, MessageId};

use super::state::DebateState;
use crate::aggregates::case::reused_message_id;
use crate::machine::{Decision, Ignored};

/// What to do about a message whose id its sender has used before; `None` for a new id. The digest is that of the payload.
pub(super) fn repetition(
    state: &DebateState,
    agent_id: &AgentId,
    message_id: &MessageId,
    digest: &str,
) -> Option<Decision<DebateEvent>> {
    let known = state.seen.get(&(message_id.clone(), agent_id.clone()))?;
    Some(if known == digest {
        Decision::Ignore(Ignored::Repetition)
    } else {
        Decision::Reject(reused_message_id())
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
