//! The durable inboxes of agents that ask JetStream for nothing: made and removed for them. See `docs/adr/0074`.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use async_nats::jetstream::{AckKind, ErrorCode};
use concord_wire::AgentId;
use concord_wire::subject::{Lane, RegisteredInbox};

use crate::broker::delivery_info::{ACKNOWLEDGEMENTS, DeliveryInfo};
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

    /// Tells the broker what an agent says of a delivery from one of its inboxes, by the reply subject of the delivery: whether it was one.
    ///
    /// The agent may not tell it itself. What it acknowledges with a reply subject of its choice the broker answers there with an empty
    /// message, which is a valid request to JetStream (`docs/adr/0116`).
    pub async fn acknowledge_for(
        &self,
        agent: &AgentId,
        delivery: &str,
        kind: AckKind,
    ) -> Result<bool, async_nats::PublishError> {
        if !self.is_from_inbox(agent, delivery) {
            return Ok(false);
        }
        self.acknowledge(delivery.into(), kind).await?;
        Ok(true)
    }

    fn is_from_inbox(&self, agent: &AgentId, delivery: &str) -> bool {
        let is_token = |token: &str| {
            let mut bytes = token.bytes();
            !token.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
        };
        let named = delivery.strip_prefix(ACKNOWLEDGEMENTS).unwrap_or_default();
        let info = DeliveryInfo::parse(delivery).filter(|_| named.split('.').all(is_token));
        info.is_some_and(|info| {
            self.inboxes(agent).any(|one| {
                (one.stream.as_str(), one.consumer.as_str()) == (info.stream, info.consumer)
            })
        })
    }

    fn inboxes(&self, agent: &AgentId) -> impl Iterator<Item = RegisteredInbox> {
        let inboxes = Lane::ALL.map(|lane| self.subjects().registered_inboxes(lane, agent));
        inboxes.into_iter().flatten()
    }
}

fn is_missing(error: &ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(error) if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND)
}
