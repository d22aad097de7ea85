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
use std::time::Duration;

use concord_runtime::broker::Unavailable;
use concord_runtime::codec::ObservedMessage;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, Timestamp, dialect};
use futures::{Stream, StreamExt};
use sha2::digest::InvalidLength;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::settings::CallbackConfig;

mod listener;
mod server;
pub(crate) mod token;

pub(crate) use server::serve;
use token::{AnswerTarget, Key};

/// Pause before an agent is listened to again when that failed.
const PAUSE: Duration = Duration::from_millis(500);

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

    /// The paths at which answers are taken: a proxy passes the path of `public_url` on, or takes it away.
    pub(crate) fn paths(&self) -> Vec<String> {
        let under = Url::parse(&self.public_url).map(|url| url.path().to_owned());
        let under = under.unwrap_or_default();
        let under = under.trim_end_matches('/');
        // A router takes such a segment for a pattern.
        let is_plain = !under.contains("/:") && !under.contains("/*");
        let mut before = vec![""];
        if !under.is_empty() && is_plain {
            before.push(under);
        }
        let path = |before| format!("{before}{}{{token}}", server::PATH);
        before.into_iter().map(path).collect()
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
pub(crate) struct PendingAnswers(Arc<Mutex<HashMap<AnswerKey, watch::Sender<Option<Posted>>>>>);

/// How the wait for an answer that was promised has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    /// The answer was published, by whichever replica.
    Published,
    /// The agent has nothing to say.
    Nothing,
}

/// The agent that answers, and the id of the message that it answers.
type AnswerKey = (AgentId, String);

/// The wait for one answer, until it is dropped.
pub(crate) struct AnswerWait {
    answers: PendingAnswers,
    key: AnswerKey,
    ended: watch::Receiver<Option<Posted>>,
}

impl PendingAnswers {
    fn all(&self) -> MutexGuard<'_, HashMap<AnswerKey, watch::Sender<Option<Posted>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the answer of `agent` to a message.
    pub(crate) fn wait(&self, agent: &AgentId, message: &str) -> AnswerWait {
        let key = (agent.clone(), message.to_owned());
        let ended = self
            .all()
            .entry(key.clone())
            .or_insert_with(|| watch::channel(None).0)
            .subscribe();
        AnswerWait {
            answers: self.clone(),
            key,
            ended,
        }
    }

    /// Ends the wait for a message that was published. It is in the dialect of its recipient.
    fn complete(&self, runner: &ServiceRunner, agent: &AgentId, message: &ObservedMessage) {
        let Some(answered) = read(runner, message).and_then(|read| read.reply_to) else {
            return;
        };
        self.end(agent, answered, Posted::Published);
    }

    /// Ends the wait for the answer of `agent` to a message, if this replica waits for it.
    fn end(&self, agent: &AgentId, message: String, posted: Posted) {
        if let Some(waiting) = self.all().get(&(agent.clone(), message)) {
            waiting.send_replace(Some(posted));
        }
    }

    /// Listens to what an agent says, until the service stops.
    pub(crate) async fn listen(self, runner: ServiceRunner, agent: AgentId) {
        let stop = runner.stop.clone();
        let hear = || self.clone().hear(runner.clone(), agent.clone());
        go_on(&stop, PAUSE, hear, &agent).await;
    }

    /// Listens to what an agent says, until that comes to an end.
    async fn hear(self, runner: ServiceRunner, agent: AgentId) -> Result<(), Unavailable> {
        let filters = Lane::ALL.map(|lane| runner.broker.subjects().messages_from(lane, &agent));
        let mut heard = hear_all(&runner, filters.to_vec()).await?;
        while let Some(message) = heard.next().await {
            self.complete(&runner, &agent, &message);
        }
        Ok(())
    }
}

/// Hears what is published on the subjects of these filters.
pub(super) async fn hear_all(
    runner: &ServiceRunner,
    filters: Vec<String>,
) -> Result<impl Stream<Item = ObservedMessage> + Send + Unpin + use<>, Unavailable> {
    let mut heard = Vec::new();
    for filter in filters {
        heard.push(runner.broker.listen(filter).await?);
    }
    Ok(futures::stream::select_all(heard))
}

/// Has an agent heard until `stop`: again after a pause where that fails or comes to an end.
async fn go_on<F: Future<Output = Result<(), Unavailable>>>(
    stop: &CancellationToken,
    pause: Duration,
    hear: impl Fn() -> F,
    agent: &AgentId,
) {
    loop {
        match stop.run_until_cancelled(hear()).await {
            None => return,
            Some(Ok(())) => {
                tracing::warn!(%agent, "What an agent says later is not heard any more; listening again.");
            }
            Some(Err(error)) => {
                tracing::warn!(%agent, error = %ErrorChain(&error), "What an agent says later cannot be heard; trying again.");
            }
        }
        let pause = tokio::time::sleep(pause);
        if stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

/// A message that was heard, in whatever dialect it is; none where it is no message.
pub(super) fn read(
    runner: &ServiceRunner,
    ObservedMessage {
        subject,
        dialect,
        payload,
    }: &ObservedMessage,
) -> Option<Envelope> {
    let subject = runner.broker.subjects().parse(subject).ok()?;
    let declared = Dialect::declared(dialect.as_deref()).ok()?;
    Some(dialect::read(payload, declared, &subject).ok()?.0)
}

impl AnswerWait {
    /// Waits until the answer was published, or the agent has said that it has none.
    pub(crate) async fn arrived(mut self) -> Posted {
        let ended = self.ended.wait_for(Option::is_some).await;
        // The sender is kept where this is known, so it cannot have gone.
        ended
            .map_or(None, |ended| *ended)
            .unwrap_or(Posted::Published)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use concord_runtime::broker::Operation;
    use concord_runtime::service::settings::Secret;

    use super::*;

    fn address(public_url: &str) -> CallbackAddress {
        CallbackAddress::new(CallbackConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            public_url: public_url.to_owned(),
            secret: Secret::new("0123456789abcdef0123456789abcdef"),
            lifetime_ms: 1_000,
        })
        .unwrap()
    }

    #[test]
    fn answers_are_taken_with_and_without_the_path_of_the_public_address() {
        let plain = "/v1/answers/{token}";
        for bare in ["https://concord.example.org", "http://127.0.0.1:8090"] {
            assert_eq!(address(bare).paths(), [plain]);
        }
        let under = "/callback/v1/answers/{token}";
        let with_path = address("https://concord.example.org/callback");
        assert_eq!(with_path.paths(), [plain, under]);
        // What a router would take for a pattern is left to the proxy.
        assert_eq!(address("https://example.org/:x").paths(), [plain]);
    }

    /// The broker may be away while the service starts, or restart.
    #[tokio::test]
    async fn an_agent_is_listened_to_again_when_that_failed_or_ended() {
        let (stop, times) = (CancellationToken::new(), AtomicUsize::new(0));
        let hear = || async {
            match times.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Operation::Subscribe.failed("no connection")),
                1 => Ok(()),
                _ => {
                    stop.cancel();
                    std::future::pending().await
                }
            }
        };
        let agent = AgentId::new("ann").unwrap();
        go_on(&stop, Duration::from_millis(1), hear, &agent).await;
        assert_eq!(times.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_wait_ends_with_what_the_agent_has_posted() {
        let (agent, pending) = (AgentId::new("ann").unwrap(), PendingAnswers::default());
        for posted in [Posted::Nothing, Posted::Published] {
            let wait = pending.wait(&agent, "m-1");
            pending.end(&agent, "m-2".to_owned(), Posted::Published);
            pending.end(&agent, "m-1".to_owned(), posted);
            assert_eq!(wait.arrived().await, posted);
        }
    }
}
