//! Bringing streams to their definitions, when somebody says so. Services only report what differs.

use async_nats::jetstream::stream::Config;
use concord_events::topology::StreamKind;
use serde::Serialize;

use crate::broker::provision::{self, Deviation};
use crate::broker::{Broker, Operation, Unavailable};

/// A change of a stream, or one that would be needed and cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What differs.
    #[serde(flatten)]
    pub deviation: Deviation,
    /// Why the broker does not change it in a stream that exists; none where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impossible: Option<&'static str>,
    /// What is lost with it; none where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loses: Option<&'static str>,
}

/// What would be changed, stream by stream.
pub async fn plan(broker: &Broker) -> Result<Vec<Change>, Unavailable> {
    let mut deviations = provision::inspect(broker).await?;
    let payloads = provision::inspect_payloads(broker).await?;
    deviations.extend(payloads.into_iter().flat_map(|(differing, _)| differing));
    Ok(deviations.into_iter().map(change).collect())
}

fn change(deviation: Deviation) -> Change {
    let impossible = match (deviation.property, deviation.found.as_str()) {
        ("subjects", _) if deviation.setting.is_some() => {
            Some("it is the stream of another installation, whose prefix differs in capitals alone")
        }
        ("retention", _) => Some("how a stream keeps messages is fixed when it is made"),
        ("allow_msg_schedules", "true") => {
            Some("that a stream takes schedules is never taken back")
        }
        _ => None,
    };
    let loses = match deviation.property {
        "max_age" => Some("where it becomes shorter, messages that are older go at once"),
        "max_messages_per_subject" => Some("where it becomes less, the oldest go at once"),
        _ => None,
    };
    Change {
        deviation,
        impossible,
        loses,
    }
}

/// Makes the changes that are possible; what was not changed is in [`plan`] afterwards. What an operator has set besides, such as compression or
/// placement, stays. Nothing is changed where one of the streams is that of another installation.
pub async fn apply(broker: &Broker) -> Result<(), Unavailable> {
    provision::not_claimed(broker).await?;
    for kind in StreamKind::ALL {
        let definition = broker.layout.stream(kind);
        let found = broker.jetstream.get_stream(&definition.name).await;
        let Ok(stream) = found else {
            continue;
        };
        let found = &stream.cached_info().config;
        if !provision::compare(&definition, found).is_empty() {
            update(broker, found, &provision::expected(&definition, found)).await?;
        }
    }
    let bucket = format!("OBJ_{}", broker.layout.payload_bucket());
    if let Ok(stream) = broker.jetstream.get_stream(&bucket).await {
        let expected = provision::payload_config(broker);
        let found = &stream.cached_info().config;
        let config = Config {
            max_bytes: expected.max_bytes,
            max_age: expected.max_age,
            num_replicas: expected.num_replicas,
            ..found.clone()
        };
        set(broker, found, config).await?;
    }
    let bucket = format!("OBJ_{}", broker.layout.archive_bucket());
    if let Ok(stream) = broker.jetstream.get_stream(&bucket).await {
        let found = &stream.cached_info().config;
        let config = Config {
            num_replicas: provision::archive_replicas(broker),
            ..found.clone()
        };
        set(broker, found, config).await?;
    }
    // What is missing is made as when a service starts.
    provision::streams(broker).await?;
    Ok(())
}

async fn update(broker: &Broker, found: &Config, expected: &Config) -> Result<(), Unavailable> {
    let config = Config {
        subjects: expected.subjects.clone(),
        num_replicas: expected.num_replicas,
        max_age: expected.max_age,
        max_messages_per_subject: expected.max_messages_per_subject,
        max_bytes: expected.max_bytes,
        discard: expected.discard,
        max_messages: expected.max_messages,
        max_message_size: expected.max_message_size,
        duplicate_window: expected.duplicate_window,
        allow_direct: expected.allow_direct,
        allow_message_schedules: found.allow_message_schedules || expected.allow_message_schedules,
        allow_message_ttl: found.allow_message_ttl || expected.allow_message_ttl,
        ..found.clone()
    };
    set(broker, found, config).await
}

/// Changes a stream, where it is not so already.
async fn set(broker: &Broker, found: &Config, config: Config) -> Result<(), Unavailable> {
    if config == *found {
        return Ok(());
    }
    let updated = broker.jetstream.update_stream(config).await;
    updated.map_err(|error| Operation::ChangeStream.failed(error))?;
    tracing::info!(stream = %found.name, "Changed a stream to its definition.");
    Ok(())
}
