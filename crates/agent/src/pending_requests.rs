//! Requests of this agent that wait for their answers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use concord_wire::MessageType;
use concord_wire::payload::notification::is_progress;
use concord_wire::subject::Service;
use tokio::sync::oneshot;

use crate::Message;

/// The message types that answer a request.
pub(crate) const ANSWERS: [MessageType; 5] = [
    MessageType::Response,
    MessageType::Error,
    MessageType::TaskResult,
    MessageType::Refuse,
    MessageType::Notification,
];
/// How many answers are remembered that were delivered early and have not come from the durable inbox yet.
const EARLY_MAX: usize = 16_384;

/// The requests of one agent that wait for an answer.
///
/// With a durable inbox an answer arrives twice: at once by a plain subscription, and later from the inbox, where it may stand
/// behind messages whose handlers wait for just this answer. The first delivery counts; the second is ignored.
#[derive(Default)]
pub(crate) struct PendingRequests {
    state: Mutex<State>,
}

/// Whose answer ends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerOf {
    /// The first that names it.
    Anybody,
    /// A service's: agents' answers to the same message come beside it.
    Service,
}

#[derive(Default)]
struct State {
    /// Who waits for whose answer, by the `message_id` of the request.
    senders: HashMap<String, (AnswerOf, oneshot::Sender<Message>)>,
    /// The requests whose answers were delivered early, oldest first.
    early: VecDeque<String>,
}

impl PendingRequests {
    /// Waits for the answer to a request until the returned value is dropped.
    pub(crate) fn register(&self, request_id: &str, of: AnswerOf) -> PendingRequest<'_> {
        let (sender, answer) = oneshot::channel();
        let waiting = (of, sender);
        self.lock().senders.insert(request_id.to_owned(), waiting);
        PendingRequest {
            requests: self,
            request_id: request_id.to_owned(),
            answer,
        }
    }

    /// Whether the message is an answer that a request waits for.
    pub(crate) fn is_awaited(&self, message: &Message) -> bool {
        let state = self.lock();
        is_answer(message) && request_ids(message).any(|id| state.waits_for(id, message))
    }

    /// Gives an answer to the request that waits for it. False if no request waits for it and none has had it early.
    pub(crate) fn deliver(&self, message: &Message) -> bool {
        if !is_answer(message) {
            return false;
        }
        let mut state = self.lock();
        state.complete(message).is_some() || request_ids(message).any(|id| state.forget_early(id))
    }

    /// The same for an answer that will also come from the durable inbox: there it is ignored.
    pub(crate) fn deliver_early(&self, message: &Message) {
        let mut state = self.lock();
        if is_answer(message)
            && let Some(request_id) = state.complete(message)
        {
            if state.early.len() == EARLY_MAX {
                state.early.pop_front();
            }
            state.early.push_back(request_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives the answer to whoever waits for it. Returns the id of the request.
    fn complete(&mut self, answer: &Message) -> Option<String> {
        let id = request_ids(answer).find(|id| self.waits_for(id, answer))?;
        let (request_id, (_, sender)) = self.senders.remove_entry(id)?;
        sender.send(answer.clone()).is_ok().then_some(request_id)
    }

    /// Whether an answer ends this request.
    fn waits_for(&self, request_id: &str, answer: &Message) -> bool {
        let waiting = self.senders.get(request_id);
        waiting.is_some_and(|(of, _)| {
            *of == AnswerOf::Anybody || Service::parse(answer.from_agent.as_str()).is_ok()
        })
    }

    /// Whether the answer to a request was delivered early; that is then forgotten.
    fn forget_early(&mut self, request_id: &str) -> bool {
        // Both deliveries have nearly the same order, so the request is one of the first.
        let position = self.early.iter().position(|other| other == request_id);
        position
            .and_then(|position| self.early.remove(position))
            .is_some()
    }
}

/// Whether a message ends the request that it names. News of Concord are about what was asked for, and say of progress that it goes on.
fn is_answer(message: &Message) -> bool {
    let tells = message.message_type == MessageType::Notification;
    let is_news = || Service::parse(message.from_agent.as_str()).is_ok() || is_progress(message);
    ANSWERS.contains(&message.message_type) && !(tells && is_news())
}

/// The requests that an answer may belong to: that of `correlation_id`, then that of `reply_to`.
fn request_ids(answer: &Message) -> impl Iterator<Item = &str> {
    [answer.correlation_id.as_deref(), answer.reply_to.as_deref()]
        .into_iter()
        .flatten()
}

/// A request that waits for its answer. Dropping it ends the wait.
pub(crate) struct PendingRequest<'a> {
    requests: &'a PendingRequests,
    request_id: String,
    answer: oneshot::Receiver<Message>,
}

impl PendingRequest<'_> {
    /// The answer; `None` where it can never come.
    pub(crate) async fn answer(&mut self) -> Option<Message> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.requests.lock().senders.remove(&self.request_id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(from: &str) -> Message {
        said(from, "response", json!({}))
    }

    fn said(from: &str, kind: &str, payload: serde_json::Value) -> Message {
        let message = json!({
            "message_id": format!("a-{from}"), "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": "ann",
            "message_type": kind, "payload": payload, "reply_to": "m-1",
        });
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn a_request_ends_with_whatever_answers_it_for_the_coordinator() {
        let event = |name: &str| json!({ "event": name, "data": {} });
        for (from, kind, payload, ends) in [
            ("bob", "response", json!({}), true),
            ("bob", "error", json!({}), true),
            ("bob", "task_result", json!({ "content": "Yes." }), true),
            ("bob", "refuse", json!({ "why": "No." }), true),
            ("bob", "notification", event("complete"), true),
            ("bob", "notification", event("progress"), false),
            (
                "coordinator",
                "notification",
                event("task_completed"),
                false,
            ),
            ("bob", "acknowledgement", json!({}), false),
        ] {
            let pending = PendingRequests::default();
            let _waiting = pending.register("m-1", AnswerOf::Anybody);
            let message = said(from, kind, payload);
            assert_eq!(pending.is_awaited(&message), ends, "{kind} of {from}");
            assert_eq!(pending.deliver(&message), ends, "{kind} of {from}");
        }
    }

    #[tokio::test]
    async fn a_question_waits_for_a_service_and_a_request_for_anybody() {
        for (of, ends_with) in [
            (AnswerOf::Service, "coordinator"),
            (AnswerOf::Anybody, "eve"),
        ] {
            let pending = PendingRequests::default();
            let mut waiting = pending.register("m-1", of);
            let is_for_anybody = of == AnswerOf::Anybody;
            assert_eq!(pending.is_awaited(&answer("eve")), is_for_anybody);
            assert_eq!(pending.deliver(&answer("eve")), is_for_anybody);
            assert_eq!(pending.deliver(&answer("coordinator")), !is_for_anybody);
            let answered = waiting.answer().await.unwrap();
            assert_eq!(answered.from_agent.as_str(), ends_with);
        }
    }
}
