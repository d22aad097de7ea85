//! The durable inboxes of agents that ask JetStream for nothing: made and removed for them. See `docs/adr/0074`.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use concord_wire::AgentId;
use concord_wire::subject::{Lane, RegisteredInbox};

use crate::broker::{Broker, Operation, Unavailable};

/// What the agent does not acknowledge within this time comes again.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered at most.
const DELIVERIES_MAX: i64 = 5;
/// How many messages of a lane an agent has at once; the broker keeps the others.
const IN_FLIGHT_MAX: i64 = 32;

impl Broker {
    /// Makes the inboxes of an agent, unless they are there. From then on the broker keeps what is said to the agent.
    pub async fn make_inboxes(&self, agent: &AgentId) -> Result<(), Unavailable> {
        for inbox in self.inboxes(agent) {
            let RegisteredInbox {
                stream,
                consumer,
                filter,
                deliver_to,
                group,
            } = inbox;
            let config = push::Config {
                durable_name: Some(consumer),
                filter_subject: filter,
                deliver_subject: deliver_to,
                deliver_group: Some(group),
                deliver_policy: DeliverPolicy::New,
                ack_policy: AckPolicy::Explicit,
                ack_wait: ACK_WAIT,
                max_deliver: DELIVERIES_MAX,
                max_ack_pending: IN_FLIGHT_MAX,
                ..push::Config::default()
            };
            let made = self.jetstream.create_consumer_on_stream(config, stream);
            made.await
                .map_err(|error| Operation::CreateConsumer.failed(error))?;
        }
        Ok(())
    }

    /// Removes the inboxes of an agent, where it has some, with what it has not taken.
    pub async fn remove_inboxes(&self, agent: &AgentId) -> Result<(), Unavailable> {
        for inbox in self.inboxes(agent) {
            let stream = self.jetstream.get_stream_no_info(inbox.stream).await;
            let stream = stream.map_err(|error| Operation::OpenStream.failed(error))?;
            match stream.delete_consumer(&inbox.consumer).await {
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(Operation::RemoveConsumer.failed(error)),
            }
        }
        Ok(())
    }

    fn inboxes(&self, agent: &AgentId) -> impl Iterator<Item = RegisteredInbox> {
        let inboxes = Lane::ALL.map(|lane| self.subjects().registered_inboxes(lane, agent));
        inboxes.into_iter().flatten()
    }
}

fn is_missing(error: &ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(error) if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND)
}
