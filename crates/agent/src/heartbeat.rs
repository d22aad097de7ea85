//! The heartbeats of an agent: how it is, and that it is there, as often as its card promises.

use std::time::Duration;

use concord_wire::payload::{AgentStatus, Beat, HEARTBEAT_MS};
use concord_wire::subject::{Service, Subject};
use concord_wire::{MessageType, Recipient};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::{Agent, Error};

/// What the heartbeats say, and how often they come.
pub(crate) struct Heartbeat {
    status: watch::Sender<AgentStatus>,
    /// In milliseconds; none where the card promises no heartbeats.
    every: watch::Sender<Option<u64>>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            status: watch::Sender::new(AgentStatus::default()),
            every: watch::Sender::new(None),
        }
    }
}

impl Heartbeat {
    pub(crate) fn every(&self) -> Option<u64> {
        *self.every.borrow()
    }
}

/// Waits until a heartbeat is due: so long after the last one, or after the last change of the interval.
async fn due(every: &mut watch::Receiver<Option<u64>>) -> Result<(), watch::error::RecvError> {
    loop {
        let Some(millis) = *every.borrow_and_update() else {
            every.changed().await?;
            continue;
        };
        // A card that says less is refused.
        let interval = Duration::from_millis(millis.max(*HEARTBEAT_MS.start()));
        match timeout(interval, every.changed()).await {
            Ok(changed) => changed?,
            Err(_) => return Ok(()),
        }
    }
}

impl Agent {
    /// Announces that the agent is available, busy or unavailable: with a heartbeat now, and with every later one, and with a message to the
    /// coordinator, which ends what that has concluded from the agent's silence.
    pub async fn status(&self, status: AgentStatus) -> Result<(), Error> {
        self.beat_as(status).await?;
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let said = json!({ "status": status });
        self.publish(&self.message(to, MessageType::Status, &said)?)
            .await
    }

    /// Says it with a heartbeat now, and with every later one.
    pub(crate) async fn beat_as(&self, status: AgentStatus) -> Result<(), Error> {
        self.inner.heartbeat.status.send_replace(status);
        self.beat().await
    }

    /// Sends a heartbeat now, and from now on as often as this.
    pub(crate) async fn beat_every(&self, millis: Option<u64>) -> Result<(), Error> {
        self.inner.heartbeat.every.send_replace(millis);
        self.beat().await
    }

    /// Sends heartbeats until the agent closes.
    pub(crate) async fn keep_beating(self) {
        let begun = &self.inner.closing.begun;
        let mut every = self.inner.heartbeat.every.subscribe();
        while let Some(Ok(())) = begun.run_until_cancelled(due(&mut every)).await {
            if let Err(error) = self.beat().await {
                tracing::warn!(%error, "No heartbeat.");
            }
        }
    }

    async fn beat(&self) -> Result<(), Error> {
        let status = *self.inner.heartbeat.status.borrow();
        let subject = self.inner.subjects.build(&Subject::Beat {
            agent: self.inner.agent_id.clone(),
        });
        let sent = self
            .inner
            .client
            .publish(subject, serde_json::to_vec(&Beat { status })?.into())
            .await;
        sent.map_err(|error| Error::broker("take a heartbeat")(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_heartbeat_is_due_as_often_as_is_said_last() {
        let (says, mut every) = watch::channel(None);
        let soon = Duration::from_millis(50);
        let long = Duration::from_secs(60);
        assert!(timeout(soon, due(&mut every)).await.is_err(), "none");
        for before in [None, Some(3_600_000)] {
            says.send_replace(before);
            let changing = async {
                tokio::task::yield_now().await;
                says.send_replace(Some(100));
            };
            let (waited, ()) = tokio::join!(timeout(long, due(&mut every)), changing);
            assert!(waited.is_ok(), "it was {before:?}");
        }
        says.send_replace(None);
        let none = timeout(3 * soon, due(&mut every)).await;
        assert!(none.is_err(), "no more");
    }
}
