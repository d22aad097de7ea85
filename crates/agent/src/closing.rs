//! Closing an agent: it takes nothing new, lets its handlers finish, and says goodbye.

use std::sync::Arc;
use std::time::Duration;

use concord_wire::payload::{AgentStatus, DEREGISTER_AGENT};
use concord_wire::subject::Service;
use concord_wire::{MessageType, Recipient};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Agent, Error};

/// How long handlers may go on when their agent closes, where its builder says nothing of it.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take to tell the senders of what is cut off. A handler that blocks its thread does not even notice.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// Where the agent is in memory whose handler runs on this task.
    static HANDLER_OF: usize;
}

/// How far an agent is with closing.
pub(crate) struct Closing {
    /// Nothing new is taken any more. Part of `stop`.
    pub(crate) begun: CancellationToken,
    /// Handlers that are still under way are cut off.
    pub(crate) cut_off: CancellationToken,
    /// Nothing is received any more, not even answers.
    pub(crate) stop: CancellationToken,
    /// How long handlers may go on.
    pub(crate) within: Duration,
    done: OnceCell<()>,
}

impl Closing {
    pub(crate) fn new(within: Duration) -> Self {
        let stop = CancellationToken::new();
        Self {
            begun: stop.child_token(),
            cut_off: CancellationToken::new(),
            stop,
            within,
            done: OnceCell::new(),
        }
    }
}

impl Agent {
    /// Takes nothing new, lets running handlers finish, deregisters where the agent has registered, and closes the connection. Handlers
    /// have the answers to what they ask meanwhile. One that goes on for longer than 30 seconds, or what
    /// [`Builder::close_within`](crate::Builder::close_within) says, is cut off, and its sender is told that it failed; what came from an
    /// inbox that keeps it comes again instead.
    ///
    /// In a handler of the agent this returns at once, and the agent is closed when its handlers have ended, also the one that closes it.
    /// (A task that the handler spawns is no handler: do not wait in the handler for one that closes the agent.) Whoever closes
    /// an agent that is being closed waits until it is.
    pub async fn close(self) -> Result<(), Error> {
        self.inner.closing.begun.cancel();
        if !self.is_in_handler() {
            return self.finish().await;
        }
        tokio::spawn(async move {
            if let Err(error) = self.finish().await {
                tracing::warn!(%error, "The agent was not closed in good order.");
            }
        });
        Ok(())
    }

    async fn finish(&self) -> Result<(), Error> {
        let closing = &self.inner.closing;
        let finished = closing.done.get_or_try_init(|| async {
            self.end_work().await;
            self.stop_listening().await;
            // One may have been taken in the moment in which it was said that nothing is.
            self.end_work().await;
            self.say_goodbye().await
        });
        finished.await.map(|_| ())
    }

    /// Waits until no handler runs, or cuts off what runs for too long.
    async fn end_work(&self) {
        let (closing, working) = (&self.inner.closing, &self.inner.working);
        working.close();
        let has_ended = closing.cut_off.run_until_cancelled(working.wait());
        if let Ok(Some(())) = timeout(closing.within, has_ended).await {
            return;
        }
        closing.cut_off.cancel();
        if timeout(CUT_OFF_WITHIN, working.wait()).await.is_err() {
            tracing::warn!("Handlers go on although they are cut off: they block their threads.");
        }
    }

    async fn stop_listening(&self) {
        self.inner.closing.stop.cancel();
        self.inner.listening.close();
        self.inner.listening.wait().await;
    }

    async fn say_goodbye(&self) -> Result<(), Error> {
        if self.inner.card.is_some() && !self.inner.stays_registered {
            self.beat_as(AgentStatus::Unavailable).await?;
            // The answer is not waited for: nothing is received any more.
            let parameters = json!({ "agent_id": self.inner.agent_id });
            let request = json!({ "action": DEREGISTER_AGENT, "parameters": parameters });
            let to = Recipient::Agent(Service::Coordinator.agent_id());
            self.publish(&self.message(to, MessageType::Request, &request)?)
                .await?;
        }
        let drained = self.inner.client.drain().await;
        drained.map_err(|error| Error::broker("close the connection")(error.into()))
    }

    /// Ends the connection of an agent that could not begin.
    pub(crate) async fn disconnect(&self) {
        self.stop_listening().await;
        if let Err(error) = self.inner.client.drain().await {
            tracing::debug!(%error, "The connection was not closed in good order.");
        }
    }

    /// Runs a handler of this agent.
    pub(crate) fn in_handler<F: Future>(
        &self,
        handler: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        HANDLER_OF.scope(self.address(), handler)
    }

    fn is_in_handler(&self) -> bool {
        HANDLER_OF.try_with(|of| *of == self.address()) == Ok(true)
    }

    /// Tells agents of one name apart.
    fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }
}
