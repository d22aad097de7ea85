//! The durable inboxes that operators make for an agent when they register it.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::stream::ConsumerErrorKind;
use concord_runtime::Broker;
use concord_wire::AgentId;
use concord_wire::subject::{Lane, RegisteredInbox};

use crate::shared::failure::Failure;

/// What the agent does not acknowledge within this time comes again.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered at most.
const DELIVERIES_MAX: i64 = 5;
/// How many messages of a lane an agent has at once; the broker keeps the others.
const IN_FLIGHT_MAX: i64 = 32;

/// Makes the inboxes of an agent, unless they are there. From then on the broker keeps what is said to the agent.
pub(super) async fn make(broker: &Broker, agent: &AgentId) -> Result<(), Failure> {
    for lane in Lane::ALL {
        let RegisteredInbox {
            stream,
            consumer,
            filter,
            deliver_to,
            group,
        } = broker.subjects().registered_inbox(lane, agent);
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
        let made = broker.jetstream.create_consumer_on_stream(config, stream);
        made.await.map_err(|error| {
            Failure::failed(format!(
                "{agent} is registered, but has no durable inbox: {error}; repeat it as an operator"
            ))
        })?;
    }
    Ok(())
}

/// Removes the inboxes of an agent, where it has some, with what it has not taken.
pub(super) async fn remove(broker: &Broker, agent: &AgentId) -> Result<(), Failure> {
    for lane in Lane::ALL {
        let inbox = broker.subjects().registered_inbox(lane, agent);
        let failed = |error: String| {
            Failure::failed(format!(
                "{agent} is on the register no longer, but its durable inbox is there: {error}"
            ))
        };
        let stream = broker.jetstream.get_stream_no_info(inbox.stream).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        let removed = stream.delete_consumer(&inbox.consumer).await;
        match removed {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
    }
    Ok(())
}

fn is_missing(error: &async_nats::jetstream::stream::ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(error) if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND)
}
