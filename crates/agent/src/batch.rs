//! Batches: requests that are asked, and answered, as one. The handler is given each of them by itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_wire::payload::batch::{answered_by, parts};
use concord_wire::payload::notification::is_progress;
use concord_wire::payload::{
    BATCH, Batch, BatchResult, ErrorReport, PartResponse, Request, Response, ResponseStatus,
    why_refused,
};
use concord_wire::{ErrorCode, Fault, MessageId, MessageType, Recipient};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::agent::{REQUEST_TIMEOUT, after, failed, now};
use crate::builder::Handler;
use crate::pending_requests::AnswerOf;
use crate::{Agent, Error, Message};

/// How long a batch with a callback may take that says nothing of it.
const WITH_CALLBACK: Duration = Duration::from_secs(3_600);
/// The largest answer to a batch, in bytes: a payload in the object store has 8 MiB.
const ANSWER_BYTES_MAX: usize = 8 * 1_048_576 - 131_072;
/// How much longer than a batch lasts its asker waits: it is told by the coordinator that the time is over.
const GRACE: Duration = Duration::from_secs(2);

/// The batches of one agent that are worked on.
#[derive(Default)]
pub(crate) struct Batches {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who waits for the answers, by the ids of the requests; nobody any more for one that is answered.
    parts: HashMap<MessageId, Option<oneshot::Sender<Message>>>,
    under_way: HashSet<MessageId>,
}

impl Batches {
    /// Whether it is an answer to a request of a batch: then it is part of the answer to the whole, and not published.
    pub(crate) fn take(&self, message: &Message) -> bool {
        let mut state = self.lock();
        if state.parts.is_empty() {
            return false;
        }
        let named = message.reply_to.as_deref().map(MessageId::new);
        let Some(Ok(part)) = named else { return false };
        let Some(waiting) = state.parts.get_mut(&part) else {
            return false;
        };
        let kind = &message.message_type;
        let tells_end = *kind == MessageType::Notification && !is_progress(message);
        if (kind.is_answer() || *kind == MessageType::Refuse || tells_end)
            && let Some(waiting) = waiting.take()
        {
            // Where its time is over nobody waits.
            drop(waiting.send(message.clone()));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch that is worked on, until it is dropped.
struct UnderWay<'a> {
    batches: &'a Batches,
    batch: &'a MessageId,
    parts: Vec<MessageId>,
}

impl<'a> UnderWay<'a> {
    /// None where it is worked on already: it was delivered again meanwhile.
    fn begin(batches: &'a Batches, batch: &'a MessageId) -> Option<Self> {
        let is_new = batches.lock().under_way.insert(batch.clone());
        is_new.then_some(Self {
            batches,
            batch,
            parts: Vec::new(),
        })
    }

    fn expect(&mut self, part: &MessageId) -> oneshot::Receiver<Message> {
        let (sender, answer) = oneshot::channel();
        self.parts.push(part.clone());
        let mut state = self.batches.lock();
        state.parts.insert(part.clone(), Some(sender));
        answer
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.batches.lock();
        state.under_way.remove(self.batch);
        for part in &self.parts {
            state.parts.remove(part);
        }
    }
}

impl Agent {
    /// Asks another for several things in one message, 100 at most, and waits for the one answer to all of them: what came of each, in
    /// their order, as [`Self::request`] would have returned it. `within` is the deadline of the whole, 30 seconds where none is stated; what the other has not done by
    /// then is an error in its place. [`Error::Refused`] where the batch is refused as a whole: then none of it was done.
    pub async fn request_batch(
        &self,
        to: impl Into<Recipient>,
        requests: Vec<Request>,
        within: Option<Duration>,
    ) -> Result<Vec<Result<Value, Error>>, Error> {
        let count = requests.len();
        let request = json!({ "action": BATCH, "parameters": Batch { requests } });
        let message = Message {
            deadline: within.map(after),
            ..self.message(to.into(), MessageType::Request, &request)?
        };
        let patience = within.unwrap_or(REQUEST_TIMEOUT) + GRACE;
        let answer = self
            .ask_for_message(message, patience, AnswerOf::Anybody)
            .await?;
        if answer.message_type == MessageType::Error {
            return Err(refused(ErrorReport::of(&answer)));
        }
        if answer.message_type == MessageType::Refuse {
            return Err(failed(why_refused(&answer), "Ask another agent."));
        }
        let response: Response = answer.payload()?;
        let result: BatchResult = serde_json::from_value(response.result)?;
        if result.responses.len() != count {
            return Err(failed(
                "The answer does not say what came of each request.".into(),
                "Ask again.",
            ));
        }
        Ok(result.responses.into_iter().map(outcome).collect())
    }

    /// Has a handler handle each request of a batch, and answers all of them together, shortly before the deadline at the latest.
    pub(crate) async fn answer_batch(self, handler: &Handler, batch: Message) {
        let Some(under_way) = UnderWay::begin(&self.inner.batches, &batch.message_id) else {
            return;
        };
        let answered = self.answer_parts(handler, &batch, under_way).await;
        let Err(error) = answered else { return };
        tracing::warn!(%error, "The answer to a batch could not be given.");
        let why = format!("{} failed.", self.inner.agent_id);
        let fault = Fault::new(
            ErrorCode::InternalError,
            "",
            why,
            "Ask each request by itself.",
        );
        if let Err(error) = self.refuse(&batch, &fault).await {
            tracing::warn!(%error, "The sender was not told.");
        }
    }

    async fn answer_parts(
        &self,
        handler: &Handler,
        batch: &Message,
        mut under_way: UnderWay<'_>,
    ) -> Result<(), Error> {
        let started = now();
        let taken_apart = batch.payload().and_then(|request: Request| {
            let usual = if request.callback_url.is_some() {
                WITH_CALLBACK
            } else {
                REQUEST_TIMEOUT
            };
            let usual = started.plus_millis(u64::try_from(usual.as_millis()).unwrap_or(u64::MAX));
            let stated = [batch.deadline, request.deadline].into_iter().flatten();
            let due = stated.min().unwrap_or(usual);
            Ok((due, parts(batch, due)?))
        });
        let (due, parts) = match taken_apart {
            Ok(parts) => parts,
            Err(fault) => return self.refuse(batch, &fault).await,
        };
        let left = answered_by(due, started).millis_since(started);
        let until = Instant::now() + Duration::from_millis(left);
        let answers: Vec<_> = parts
            .iter()
            .map(|part| under_way.expect(&part.message_id))
            .collect();
        let handling: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let handled = self.clone().run_handler(handler.clone(), part);
                AbortOnDropHandle::new(self.inner.working.spawn(handled))
            })
            .collect();
        let mut responses = Vec::new();
        for answer in answers {
            let answer = timeout_at(until, answer).await;
            responses.push(match answer {
                Ok(Ok(answer)) => PartResponse::of_answer(&answer),
                _ => PartResponse::late(&self.inner.agent_id),
            });
        }
        let response = BatchResult { responses }.into_response(ANSWER_BYTES_MAX);
        self.reply(batch, MessageType::Response, &response).await?;
        // What comes later has its place in no answer.
        futures::future::join_all(handling).await;
        Ok(())
    }
}

/// What a request by itself would have returned.
fn outcome(part: PartResponse) -> Result<Value, Error> {
    match (part.error, part.status) {
        (Some(error), _) => Err(refused(error)),
        (None, ResponseStatus::Failure) if part.errors.is_empty() => {
            Err(failed("It failed.".into(), "Ask again."))
        }
        (None, ResponseStatus::Failure) => Err(failed(part.errors.join("; "), "Ask again.")),
        (None, _) => Ok(part.result),
    }
}

fn refused(report: ErrorReport) -> Error {
    Error::Refused(Box::new(report))
}
