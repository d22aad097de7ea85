//! Whom the events of a conversation are told.

use concord_events::{LoopBroken, WakeDecided};
use concord_wire::AgentId;
use concord_wire::payload::notification::{self, Woken};

use super::{DecidedMessage, REPEATED_BYTES_MAX, WakeState};
use crate::activation::windows::context_of;
use crate::effect::Effect;
use crate::rules::size_budget::json_bytes;

/// About how many bytes are sent to those whom a message wakes: the message, and what each of them may see of the conversation.
pub fn told_bytes(state: &WakeState, decided: &DecidedMessage) -> usize {
    let woken = decided.decisions.woken().map(|(agent, _)| agent);
    let others: Vec<&AgentId> = woken
        .filter(|agent| decided.said.to.as_str() != agent.as_str())
        .collect();
    if others.is_empty() {
        return 0;
    }
    let repeated = Some(json_bytes(&decided.message)).filter(|bytes| *bytes <= REPEATED_BYTES_MAX);
    let each = repeated.unwrap_or_default() + json_bytes(&decided.said);
    let windows = state.windows.at(decided.case_id.as_ref());
    let seen = |agent: &&AgentId| -> usize {
        let window = windows.of(agent, decided.context_max);
        window.iter().map(|one| json_bytes(&**one)).sum()
    };
    others.iter().map(|agent| each + seen(agent)).sum()
}

pub(super) fn woken(decided: &WakeDecided) -> impl Iterator<Item = Effect> {
    // The addressee has the message already.
    let others = decided
        .woken
        .iter()
        .filter(|one| decided.said.to.as_str() != one.agent_id.as_str());
    others.map(|one| {
        let data = Woken {
            reason: one.reason.clone(),
            score: one.score,
            said: decided.said.clone(),
            message: decided.message.clone(),
            context: context_of(decided, &one.agent_id),
        };
        Effect::tell(one.agent_id.clone(), data)
    })
}

/// Tells both agents that they do not wake each other any more, and how to go on.
pub(super) fn report_loop(broken: &LoopBroken) -> impl Iterator<Item = Effect> {
    let pairs = [(&broken.from, &broken.to), (&broken.to, &broken.from)];
    pairs.into_iter().map(|(agent, other)| {
        let LoopBroken { depth, window_ms, until, .. } = broken;
        let seconds = window_ms / 1_000;
        let data = notification::LoopBroken {
            thread: broken.thread.clone(),
            message_id: broken.message_id.clone(),
            with: other.clone(),
            depth: *depth,
            window_ms: *window_ms,
            until: *until,
            what_to_do: format!(
                "You and {other} have answered each other {depth} times within {seconds} s. Until {until} neither of you \
                 is woken by the other in this thread. Answer only what asks for an answer; sum up and end the thread, \
                 ask a person, or begin another thread."
            ),
        };
        Effect::tell(agent.clone(), data)
    })
}
