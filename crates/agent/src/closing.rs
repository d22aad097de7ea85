//! Closing an agent: it takes nothing new, lets its handlers finish, and says goodbye.

use concord_wire::payload::{AgentStatus, DEREGISTER_AGENT};
use concord_wire::subject::Service;
use concord_wire::{MessageType, Recipient};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Agent, Error};

/// How far an agent is with closing.
pub(crate) struct Closing {
    /// Nothing new is taken any more. Part of `stop`.
    pub(crate) begun: CancellationToken,
    /// Nothing is received any more, not even answers.
    pub(crate) stop: CancellationToken,
}

impl Default for Closing {
    fn default() -> Self {
        let stop = CancellationToken::new();
        Self {
            begun: stop.child_token(),
            stop,
        }
    }
}

impl Agent {
    /// Takes nothing new, lets running handlers finish, deregisters where the agent has registered, and closes the connection. Handlers
    /// have the answers to what they ask meanwhile.
    pub async fn close(self) -> Result<(), Error> {
        self.inner.closing.begun.cancel();
        self.end_work().await;
        self.stop_listening().await;
        // One may have been taken in the moment in which it was said that nothing is.
        self.end_work().await;
        self.say_goodbye().await
    }

    /// Waits until no handler runs.
    async fn end_work(&self) {
        self.inner.working.close();
        self.inner.working.wait().await;
    }

    async fn stop_listening(&self) {
        self.inner.closing.stop.cancel();
        self.inner.listening.close();
        self.inner.listening.wait().await;
    }

    async fn say_goodbye(&self) -> Result<(), Error> {
        if self.inner.card.is_some() {
            self.status(AgentStatus::Unavailable).await?;
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
}
