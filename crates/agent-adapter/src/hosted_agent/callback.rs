//! Answers that come later. An agent that answers a message with status 202 posts its answer later, to an address that the
//! adapter gave it.
//!
//! The address holds everything that is needed to publish the answer, and is signed, so any replica can take the answer. Only the
//! replica that called the agent knows that an answer is due. It waits until the answer is published, by whichever replica, and
//! reports a failure when the time is over. If that replica is killed, the message is delivered to another one, which calls the
//! agent again under the same idempotency key.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_runtime::codec::ObservedMessage;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Timestamp, dialect};
use futures::StreamExt;
use sha2::digest::InvalidLength;
use tokio::sync::{Semaphore, watch};

use crate::settings::CallbackConfig;

mod listener;
mod server;
pub(crate) mod token;

pub(crate) use server::serve;
use token::{AnswerTarget, Key};

/// The address to which answers are posted, and the key that signs it.
pub(crate) struct CallbackAddress {
    pub(crate) listen: SocketAddr,
    public_url: String,
    key: Key,
    lifetime_ms: u64,
}

impl CallbackAddress {
    /// Fails only if the key could not be used for signing; keys of every length can.
    pub(crate) fn new(config: CallbackConfig) -> Result<Self, InvalidLength> {
        Ok(Self {
            listen: config.listen,
            public_url: config.public_url,
            key: Key::new(config.secret.reveal().as_bytes())?,
            lifetime_ms: config.lifetime_ms,
        })
    }

    /// The end of the time for an answer to a message.
    pub(crate) fn until(&self, now: Timestamp, deadline: Option<Timestamp>) -> Timestamp {
        let most = now.plus_millis(self.lifetime_ms);
        deadline.map_or(most, |deadline| deadline.min(most))
    }

    /// The address for the answer to one message.
    pub(crate) fn url(&self, target: &AnswerTarget) -> String {
        format!(
            "{}{}{}",
            self.public_url,
            server::PATH,
            self.key.seal(target)
        )
    }
}

/// The state of a replica for answers that come later.
pub(crate) struct AsyncAnswers {
    pub(crate) address: Arc<CallbackAddress>,
    pub(crate) pending: PendingAnswers,
    /// How many answers may be waited for at once.
    pub(crate) permits: Semaphore,
}

/// The answers that this replica waits for.
#[derive(Clone, Default)]
pub(crate) struct PendingAnswers(Arc<Mutex<HashMap<AnswerKey, watch::Sender<bool>>>>);

/// The agent that answers, and the id of the message that it answers.
type AnswerKey = (AgentId, String);

/// The wait for one answer, until it is dropped.
pub(crate) struct AnswerWait {
    answers: PendingAnswers,
    key: AnswerKey,
    published: watch::Receiver<bool>,
}

impl PendingAnswers {
    fn all(&self) -> MutexGuard<'_, HashMap<AnswerKey, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the answer of `agent` to a message.
    pub(crate) fn wait(&self, agent: &AgentId, message: &str) -> AnswerWait {
        let key = (agent.clone(), message.to_owned());
        let published = self
            .all()
            .entry(key.clone())
            .or_insert_with(|| watch::channel(false).0)
            .subscribe();
        AnswerWait {
            answers: self.clone(),
            key,
            published,
        }
    }

    /// Ends the wait for a message that was published. It is in the dialect of its recipient.
    fn complete(&self, runner: &ServiceRunner, agent: &AgentId, message: &ObservedMessage) {
        let Some(answered) = reply_to(runner, message) else {
            return;
        };
        if let Some(waiting) = self.all().get(&(agent.clone(), answered)) {
            waiting.send_replace(true);
        }
    }

    /// Listens to what an agent says, until the service stops.
    pub(crate) async fn listen(self, runner: ServiceRunner, agent: AgentId) {
        let filters = Lane::ALL.map(|lane| runner.broker.subjects().messages_from(lane, &agent));
        let mut heard = Vec::new();
        for filter in filters {
            match runner.broker.listen(filter).await {
                Ok(stream) => heard.push(stream),
                Err(error) => {
                    tracing::error!(%agent, error = %ErrorChain(&error), "What an agent says later cannot be heard.");
                    return;
                }
            }
        }
        let mut heard = futures::stream::select_all(heard);
        loop {
            tokio::select! {
                next = heard.next() => match next {
                    Some(message) => self.complete(&runner, &agent, &message),
                    None => return,
                },
                () = runner.stop.cancelled() => return,
            }
        }
    }
}

/// The id of the message that a message answers.
fn reply_to(
    runner: &ServiceRunner,
    ObservedMessage {
        subject,
        dialect,
        payload,
    }: &ObservedMessage,
) -> Option<String> {
    let subject = runner.broker.subjects().parse(subject).ok()?;
    let declared = Dialect::declared(dialect.as_deref()).ok()?;
    dialect::read(payload, declared, &subject).ok()?.0.reply_to
}

impl AnswerWait {
    /// Waits until the answer was published.
    pub(crate) async fn arrived(mut self) {
        // The sender is kept where this is known, so it cannot have gone.
        let _ = self.published.wait_for(|published| *published).await;
    }
}

impl Drop for AnswerWait {
    fn drop(&mut self) {
        let mut all = self.answers.all();
        // The other waits for the same answer, as when the broker has delivered the message twice.
        if all
            .get(&self.key)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            all.remove(&self.key);
        }
    }
}
