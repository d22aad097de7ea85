//! What an agent does about questions to the group: its handler runs when the agent adapter has woken it, and then knows why.

use concord_wire::payload::notification::{EventData, Woken};
use concord_wire::payload::{Notification, Remembered};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, MessageType, Recipient};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::Message;
use crate::builder::Handlers;

/// The types whose handlers run only for messages that concern the agent.
const GROUP: [MessageType; 3] = [
    MessageType::GroupQuery,
    MessageType::PeerRequest,
    MessageType::ExpertiseOffer,
];
/// Where in its metadata a message says to its handler why it woke the agent. It is not sent.
const WOKEN: &str = "woken";

tokio::task_local! {
    /// What the handler on this task handles.
    static UNDER_WAY: UnderWay;
}

/// What an agent handles.
#[derive(Clone)]
struct UnderWay {
    agent: AgentId,
    conversation: Option<CaseId>,
    /// The message, if it is a question to the group.
    question: Option<Message>,
}

/// Runs the handler of a message. While it does, [`question_under_way`] has the question on the same task, and [`conversation_under_way`] its
/// conversation.
pub(crate) fn handling<F: Future>(
    agent: &AgentId,
    message: &Message,
    handler: F,
) -> impl Future<Output = F::Output> + use<F> {
    let is_question = matches!(
        message.message_type,
        MessageType::GroupQuery | MessageType::PeerRequest
    );
    let under_way = UnderWay {
        agent: agent.clone(),
        conversation: message.case_id.clone(),
        question: is_question.then(|| message.clone()),
    };
    UNDER_WAY.scope(under_way, handler)
}

/// The conversation of the message that this agent is handling on this task.
pub(crate) fn conversation_under_way(agent: &AgentId) -> Option<CaseId> {
    let of = |under_way: &UnderWay| {
        let conversation = under_way.conversation.clone();
        conversation.filter(|_| under_way.agent == *agent)
    };
    UNDER_WAY.try_with(of).ok()?
}

/// The question to the group that this agent is handling on this task, unless it belongs to another conversation.
pub(crate) fn question_under_way(agent: &AgentId, conversation: &CaseId) -> Option<Message> {
    let under_way = UNDER_WAY.try_with(Clone::clone).ok()?;
    let by = under_way.agent;
    let is_in_it = under_way
        .conversation
        .is_none_or(|case| case == *conversation);
    under_way.question.filter(|_| by == *agent && is_in_it)
}

/// Why a question to the group woke this agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wake {
    /// The rule, for example `mention` or `semantic:<skill>`.
    pub reason: String,
    /// The probability that the message concerns this agent; `None` where none was needed.
    pub score: Option<f64>,
    /// The messages before it in the same conversation, oldest first.
    pub context: Vec<Remembered>,
}

impl Wake {
    /// Why this message woke the agent that handles it; `None` where it was addressed to the agent, and where it is no question to
    /// the group.
    pub fn of(message: &Message) -> Option<Self> {
        serde_json::from_str(message.metadata.extensions.get(WOKEN)?.get()).ok()
    }
}

/// The message to handle: a question to the group in place of the notification that it woke this agent, and none in place of a
/// question that has not woken it.
pub(crate) fn awake(message: Message, agent: &AgentId, handlers: &Handlers) -> Option<Message> {
    if GROUP.contains(&message.message_type) {
        let is_for_it = message.to_agent == Recipient::Agent(agent.clone());
        return (is_for_it || handlers.hears_all(&message.message_type)).then_some(message);
    }
    let Some((mut asked, wake)) = question_of(&message) else {
        return Some(message);
    };
    if handlers.handler_of(&asked.message_type).is_none() {
        return Some(message);
    }
    if handlers.hears_all(&asked.message_type) && asked.to_agent != Recipient::Any {
        // It was handled when it was said.
        return None;
    }
    let wake = to_raw_value(&wake).ok()?;
    asked.metadata.extensions.insert(WOKEN, wake);
    Some(asked)
}

/// The question by which the agent was woken, if the message is the notification of that and repeats it.
fn question_of(message: &Message) -> Option<(Message, Wake)> {
    let is_told = message.message_type == MessageType::Notification
        && message.from_agent == Service::AgentAdapter.agent_id();
    let told: Notification = is_told.then(|| message.payload().ok()).flatten()?;
    if told.event != Woken::EVENT {
        return None;
    }
    let woken: Woken = serde_json::from_value(told.data).ok()?;
    let asked: Message = serde_json::from_value(woken.message).ok()?;
    let Woken {
        reason,
        score,
        context,
        ..
    } = woken;
    GROUP.contains(&asked.message_type).then_some((
        asked,
        Wake {
            reason,
            score,
            context,
        },
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Agent;

    fn said(kind: &str, from: &str, to: &str, payload: &Value) -> Value {
        json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00.000Z", "from_agent": from, "to_agent": to,
            "message_type": kind, "payload": payload, "metadata": { "version": "1.0" },
        })
    }

    fn question(to: &str) -> Value {
        said(
            "group_query",
            "user",
            to,
            &json!({ "content": "Who bears the tax?" }),
        )
    }

    fn woken(from: &str, event: &str, message: &Value) -> Value {
        let said_in_short = json!({
            "message_id": "m-1", "from": "user", "to": "_all", "message_type": "group_query",
            "at": "2026-11-21T20:00:00.000Z", "text": "Who bears the tax?",
        });
        let data = json!({ "reason": "semantic:tax", "score": 0.98, "said": said_in_short, "message": message, "context": [] });
        said(
            "notification",
            from,
            "ann",
            &json!({ "event": event, "data": data }),
        )
    }

    /// What is handled of this: the type of the message and the reason, if it was woken by it.
    fn heard(message: Value, hears_all: bool) -> Option<(String, Option<String>)> {
        let builder = Agent::builder("ann").on(MessageType::GroupQuery, |_, _| async { Ok(()) });
        let builder = match hears_all {
            true => builder.hear_all(MessageType::GroupQuery),
            false => builder,
        };
        let message = serde_json::from_value(message).unwrap();
        let handled = awake(message, &AgentId::new("ann").unwrap(), &builder.handlers)?;
        let reason = Wake::of(&handled).map(|wake| wake.reason);
        Some((handled.message_type.to_string(), reason))
    }

    #[test]
    fn a_question_is_handled_when_it_has_woken_the_agent() {
        let handled =
            |kind: &str, reason: Option<&str>| Some((kind.to_owned(), reason.map(str::to_owned)));
        let (query, notice) = ("group_query", "notification");
        for (message, hears_all, expected) in [
            (question("_all"), false, None),
            (question("_all"), true, handled(query, None)),
            (question("ann"), false, handled(query, None)),
            (
                woken("agent-adapter", "woken", &question("_all")),
                false,
                handled(query, Some("semantic:tax")),
            ),
            (
                woken("agent-adapter", "woken", &question("_all")),
                true,
                None,
            ),
            (
                woken("agent-adapter", "woken", &question("_any")),
                true,
                handled(query, Some("semantic:tax")),
            ),
            (
                woken("eve", "woken", &question("_any")),
                false,
                handled(notice, None),
            ),
            (
                woken("agent-adapter", "lunch", &question("_any")),
                false,
                handled(notice, None),
            ),
            (
                woken("agent-adapter", "woken", &Value::Null),
                false,
                handled(notice, None),
            ),
            (
                woken(
                    "agent-adapter",
                    "woken",
                    &said("peer_request", "user", "_any", &json!({})),
                ),
                false,
                handled(notice, None),
            ),
        ] {
            assert_eq!(
                heard(message.clone(), hears_all),
                expected,
                "{message} {hears_all}"
            );
        }
    }
}
