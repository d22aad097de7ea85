//! Requests that wait for their answers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use concord_wire::MessageType;
use tokio::sync::oneshot;

use crate::Message;

/// What ends a request.
pub(crate) const ENDS: [MessageType; 2] = [MessageType::Response, MessageType::Error];
/// Answers that are remembered until they come from the durable inbox as well.
const AHEAD_MAX: usize = 16_384;

/// The requests of one agent that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By `message_id`.
    answers: HashMap<String, oneshot::Sender<Message>>,
    /// Those whose answers were heard ahead of the durable inbox, the earliest first.
    ahead: VecDeque<String>,
}

impl Waiting {
    /// Waits for the answer to a request, for as long as what this returns is there.
    pub(crate) fn begin(&self, request: &str) -> Request<'_> {
        let (answer, answered) = oneshot::channel();
        self.known().answers.insert(request.to_owned(), answer);
        Request {
            waiting: self,
            id: request.to_owned(),
            answered,
        }
    }

    /// Whether it is an answer that a request waits for.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let known = self.known();
        is_end(message) && named(message).any(|name| known.answers.contains_key(name))
    }

    /// Gives an answer to the request that waits for it; false when none does, nor has had it ahead of the durable inbox.
    pub(crate) fn hand_over(&self, message: &Message) -> bool {
        if !is_end(message) {
            return false;
        }
        let mut known = self.known();
        known.give(message).is_some() || named(message).any(|name| known.had(name))
    }

    /// The same of what comes from the durable inbox as well: there it is passed over.
    pub(crate) fn hand_over_ahead(&self, message: &Message) {
        let mut known = self.known();
        if is_end(message)
            && let Some(request) = known.give(message)
        {
            if known.ahead.len() == AHEAD_MAX {
                known.ahead.pop_front();
            }
            known.ahead.push_back(request);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The request that waited for it, and waits no more.
    fn give(&mut self, message: &Message) -> Option<String> {
        let (request, answer) = named(message).find_map(|name| self.answers.remove_entry(name))?;
        answer.send(message.clone()).is_ok().then_some(request)
    }

    fn had(&mut self, request: &str) -> bool {
        // They come in the order in which they were heard: it is one of the first.
        let place = self.ahead.iter().position(|other| other == request);
        place.and_then(|place| self.ahead.remove(place)).is_some()
    }
}

fn is_end(message: &Message) -> bool {
    ENDS.contains(&message.message_type)
}

/// The request that an answer names: in `correlation_id`, or at least in `reply_to`.
fn named(answer: &Message) -> impl Iterator<Item = &str> {
    [answer.correlation_id.as_deref(), answer.reply_to.as_deref()]
        .into_iter()
        .flatten()
}

/// A request that waits. Forgotten whatever happens, also when nobody waits any more.
pub(crate) struct Request<'a> {
    waiting: &'a Waiting,
    id: String,
    answered: oneshot::Receiver<Message>,
}

impl Request<'_> {
    /// Its answer.
    pub(crate) async fn answer(&mut self) -> Option<Message> {
        (&mut self.answered).await.ok()
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.waiting.known().answers.remove(&self.id);
    }
}
