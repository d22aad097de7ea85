//! Streams and consumers: created when missing, compared when there. What differs is reported, never silently changed.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use concord_events::topology::{StreamDefinition, StreamKind};

use crate::broker::{Broker, Operation, Unavailable};

const REPLICAS: &str = "storage.replicas";
const MESSAGE_DAYS: &str = "storage.message_days";

/// A stream that is not as it is defined.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Deviation {
    /// The stream's name.
    pub stream: String,
    /// The property of the stream that differs.
    pub property: &'static str,
    /// What it is.
    pub found: String,
    /// What it should be.
    pub expected: String,
    /// The setting of who looks that this follows from; none where it is the same for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<&'static str>,
}

/// Creates the streams that are missing and compares the others with their definitions.
pub async fn streams(broker: &Broker) -> Result<Vec<Deviation>, Unavailable> {
    let mut deviations = Vec::new();
    for kind in StreamKind::ALL {
        let definition = broker.layout.stream(kind);
        match broker.jetstream.get_stream(&definition.name).await {
            Ok(stream) => deviations.extend(compare(&definition, &stream.cached_info().config)),
            Err(error) if is_missing(&error) => {
                let created = broker.jetstream.create_stream(config(&definition)).await;
                created.map_err(|source| not_created(&definition.name, source))?;
                tracing::info!(stream = %definition.name, "Created a stream.");
            }
            Err(error) => return Err(Operation::DescribeStream.failed(error)),
        }
    }
    payload_bucket(broker).await?;
    for Deviation {
        stream,
        property,
        found,
        expected,
        ..
    } in &deviations
    {
        tracing::warn!(%stream, property, %found, %expected, "A stream differs from its definition.");
    }
    Ok(deviations)
}

/// A stream that the broker does not create.
#[derive(Debug, thiserror::Error)]
#[error("{stream}{}", setting.map_or(String::new(), |setting| format!(", see the setting {setting}")))]
struct NotCreated {
    stream: String,
    /// The setting that the broker refuses, where its answer shows that.
    setting: Option<&'static str>,
    source: CreateStreamError,
}

fn not_created(stream: &str, source: CreateStreamError) -> Unavailable {
    let setting = match source.kind() {
        CreateStreamErrorKind::JetStream(error) => setting_of(&error),
        _ => None,
    };
    Operation::CreateStream.failed(NotCreated {
        stream: stream.to_owned(),
        setting,
        source,
    })
}

/// The setting that the broker speaks of when it refuses a stream.
fn setting_of(error: &jetstream::Error) -> Option<&'static str> {
    let said = error.to_string().to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| said.contains(word));
    // The words are those of nats-server; it has many numbers for each.
    if speaks_of(&["storage", "resource", "max bytes", "maximum bytes"]) {
        Some("storage.bytes_max")
    } else if speaks_of(&["replica", "peers", "placement"]) {
        Some(REPLICAS)
    } else if speaks_of(&["max age", "duplicates window"]) {
        Some(MESSAGE_DAYS)
    } else {
        None
    }
}

/// Creates the object store of large payloads where it is missing. Without room for it everything else goes on: the broker
/// reserves what a bucket may take.
async fn payload_bucket(broker: &Broker) -> Result<(), Unavailable> {
    let bucket = broker.layout.payload_bucket();
    match broker.jetstream.get_stream(format!("OBJ_{bucket}")).await {
        Ok(_) => return Ok(()),
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(Operation::DescribePayloadStore.failed(error)),
    }
    match broker
        .jetstream
        .create_object_store(payload_config(broker))
        .await
    {
        Ok(_) => tracing::info!(%bucket, "Created an object store."),
        Err(error) => {
            let error = crate::error_chain::ErrorChain(&error);
            tracing::warn!(%bucket, %error, "No object store; payloads over 1 MB cannot travel. See storage.payload_store_bytes.");
        }
    }
    Ok(())
}

pub(super) fn payload_config(broker: &Broker) -> jetstream::object_store::Config {
    let messages = broker.layout.stream(StreamKind::Messages);
    jetstream::object_store::Config {
        bucket: broker.layout.payload_bucket(),
        description: Some(
            "Payloads over 1 MB, to which messages refer. Kept as long as messages.".to_owned(),
        ),
        max_age: messages.max_age.unwrap_or_default(),
        max_bytes: i64::try_from(broker.payload_store.store_bytes).unwrap_or(i64::MAX),
        storage: StorageType::File,
        num_replicas: messages.replicas,
        ..jetstream::object_store::Config::default()
    }
}

/// Compares the streams with their definitions, that of an archive in the broker, too; a missing one that services need is a deviation.
pub async fn inspect(broker: &Broker) -> Result<Vec<Deviation>, Unavailable> {
    let mut deviations = Vec::new();
    for kind in StreamKind::ALL {
        let definition = broker.layout.stream(kind);
        match broker.jetstream.get_stream(&definition.name).await {
            Ok(stream) => deviations.extend(compare(&definition, &stream.cached_info().config)),
            Err(error) if is_missing(&error) => deviations.push(Deviation {
                stream: definition.name,
                property: "existence",
                found: "missing".into(),
                expected: "created by the first service that starts".into(),
                setting: None,
            }),
            Err(error) => return Err(Operation::DescribeStream.failed(error)),
        }
    }
    let bucket = format!("OBJ_{}", broker.layout.archive_bucket());
    match broker.jetstream.get_stream(&bucket).await {
        Ok(stream) => {
            let found = stream.cached_info().config.num_replicas;
            let copies = row("replicas", found, archive_replicas(broker));
            deviations.extend(differing(&bucket, [copies], |_| Some(REPLICAS)));
        }
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(Operation::DescribeStream.failed(error)),
    }
    Ok(deviations)
}

/// How many copies there are of an archive in the broker: as many as of the events that went there.
pub(super) fn archive_replicas(broker: &Broker) -> usize {
    broker.layout.stream(StreamKind::Events).replicas
}

/// How full the object store of large payloads is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes that it may take; no limit when absent.
    pub bytes_max: Option<u64>,
}

/// The object store of large payloads compared with the settings, and how full it is; none where there is no store.
pub async fn inspect_payloads(
    broker: &Broker,
) -> Result<Option<(Vec<Deviation>, Fill)>, Unavailable> {
    let bucket = broker.layout.payload_bucket();
    let info = match broker.jetstream.get_stream(format!("OBJ_{bucket}")).await {
        Ok(stream) => stream.cached_info().clone(),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(Operation::DescribePayloadStore.failed(error)),
    };
    let expected = payload_config(broker);
    let limit = |bytes: i64| {
        if bytes > 0 {
            bytes.to_string()
        } else {
            "unlimited".to_owned()
        }
    };
    let rows = [
        (
            "max_bytes",
            limit(info.config.max_bytes),
            limit(expected.max_bytes),
        ),
        (
            "max_age",
            format!("{:?}", info.config.max_age),
            format!("{:?}", expected.max_age),
        ),
        (
            "replicas",
            info.config.num_replicas.to_string(),
            expected.num_replicas.to_string(),
        ),
    ];
    let setting = |property: &str| match property {
        "max_bytes" => Some("storage.payload_store_bytes"),
        "max_age" => Some(MESSAGE_DAYS),
        _ => Some(REPLICAS),
    };
    let deviations = differing(&format!("OBJ_{bucket}"), rows, setting);
    let bytes_max = u64::try_from(info.config.max_bytes)
        .ok()
        .filter(|bytes| *bytes > 0);
    Ok(Some((
        deviations,
        Fill {
            bytes: info.state.bytes,
            bytes_max,
        },
    )))
}

/// Whether there is no such stream, in place of an answer that has failed to come.
pub fn is_missing(error: &jetstream::context::GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == jetstream::ErrorCode::STREAM_NOT_FOUND)
}

pub(super) fn config(definition: &StreamDefinition) -> Config {
    Config {
        name: definition.name.clone(),
        description: Some(definition.kind.doc().to_owned()),
        subjects: definition.subjects.clone(),
        retention: RetentionPolicy::Limits,
        // What has no room is refused, and its sender hears of it; nothing that was acknowledged is thrown away for it.
        discard: match definition.bytes_max {
            Some(_) => DiscardPolicy::New,
            None => DiscardPolicy::Old,
        },
        max_bytes: bytes_of(definition),
        storage: StorageType::File,
        num_replicas: definition.replicas,
        max_age: definition.max_age.unwrap_or_default(),
        max_messages_per_subject: definition.max_messages_per_subject.unwrap_or(-1),
        duplicate_window: definition.duplicate_window,
        allow_direct: true,
        allow_message_schedules: definition.schedules,
        allow_message_ttl: definition.schedules,
        ..Config::default()
    }
}

fn bytes_of(definition: &StreamDefinition) -> i64 {
    let bytes = definition.bytes_max.map(i64::try_from);
    bytes.map_or(-1, |bytes| bytes.unwrap_or(i64::MAX))
}

/// A property of a stream, as it is and as it should be.
fn row<T: std::fmt::Debug>(
    property: &'static str,
    found: T,
    expected: T,
) -> (&'static str, String, String) {
    (property, format!("{found:?}"), format!("{expected:?}"))
}

pub(super) fn compare(definition: &StreamDefinition, found: &Config) -> Vec<Deviation> {
    let mut expected = config(definition);
    if definition.bytes_max.is_none() {
        // A limit that an operator has set on the stream itself is theirs.
        (expected.max_bytes, expected.discard) = (found.max_bytes, found.discard);
    }
    let unlimited = |n: i64| if n <= 0 { -1 } else { n };
    let rows = [
        row("subjects", &found.subjects, &expected.subjects),
        row("retention", found.retention, expected.retention),
        row("replicas", found.num_replicas, expected.num_replicas),
        row("max_age", found.max_age, expected.max_age),
        row(
            "max_messages_per_subject",
            unlimited(found.max_messages_per_subject),
            unlimited(expected.max_messages_per_subject),
        ),
        row(
            "max_bytes",
            unlimited(found.max_bytes),
            unlimited(expected.max_bytes),
        ),
        row("discard", found.discard, expected.discard),
        row(
            "duplicate_window",
            found.duplicate_window,
            expected.duplicate_window,
        ),
        row("allow_direct", found.allow_direct, expected.allow_direct),
        row(
            "allow_msg_schedules",
            found.allow_message_schedules,
            expected.allow_message_schedules,
        ),
    ];
    differing(&definition.name, rows, |property| match property {
        "replicas" => Some(REPLICAS),
        "max_age" => definition.max_age.map(|_| MESSAGE_DAYS),
        "max_bytes" | "discard" => Some("storage.bytes_max"),
        _ => None,
    })
}

/// The properties of a stream that are not as they should be, each with its setting.
fn differing(
    stream: &str,
    rows: impl IntoIterator<Item = (&'static str, String, String)>,
    setting: impl Fn(&str) -> Option<&'static str>,
) -> Vec<Deviation> {
    let rows = rows.into_iter();
    rows.filter(|(_, found, expected)| found != expected)
        .map(|(property, found, expected)| Deviation {
            stream: stream.to_owned(),
            property,
            found,
            expected,
            setting: setting(property),
        })
        .collect()
}

/// A durable pull consumer shared by all replicas of whoever pulls from it.
#[derive(Debug, Clone)]
pub struct PullConsumer {
    /// The stream's name.
    pub stream: String,
    /// The consumer's durable name.
    pub name: String,
    /// Subjects it is given.
    pub filter: String,
    /// How long one delivery may take before it is given to another.
    pub ack_wait: Duration,
    /// Deliveries under way at once, over all replicas.
    pub ack_pending_max: i64,
    /// Deliveries under way at once in this process, over all consumers of one handler.
    pub in_flight_max: usize,
}

impl PullConsumer {
    /// How many messages are asked for at once.
    pub(crate) fn batch(&self) -> usize {
        (self.in_flight_max * 2).clamp(1, 1_000)
    }

    /// Creates the consumer, or brings an existing one of this name to this definition.
    pub async fn bind(
        &self,
        broker: &Broker,
    ) -> Result<jetstream::consumer::Consumer<pull::Config>, Unavailable> {
        let config = pull::Config {
            durable_name: Some(self.name.clone()),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack_wait,
            // Bounded by the service itself, so that the last delivery can still be recorded as dead.
            max_deliver: -1,
            max_ack_pending: self.ack_pending_max,
            filter_subject: self.filter.clone(),
            ..pull::Config::default()
        };
        let created = broker
            .jetstream
            .create_consumer_on_stream(config, self.stream.as_str())
            .await;
        created.map_err(|error| Operation::CreateConsumer.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_refused_is_named_with_its_setting() {
        for (description, setting) in [
            (
                "insufficient storage resources available",
                Some("storage.bytes_max"),
            ),
            (
                "resource limits exceeded for account",
                Some("storage.bytes_max"),
            ),
            (
                "replicas > 1 not supported in non-clustered mode",
                Some("storage.replicas"),
            ),
            ("no suitable peers for placement", Some("storage.replicas")),
            ("max age needs to be >= 100ms", Some("storage.message_days")),
            ("maximum number of streams reached", None),
        ] {
            let refused =
                serde_json::json!({ "code": 500, "err_code": 1, "description": description });
            let refused: jetstream::Error = serde_json::from_value(refused).unwrap();
            let error = not_created(
                "CONCORD_EVENTS",
                CreateStreamErrorKind::JetStream(refused).into(),
            );
            let said = crate::error_chain::ErrorChain(&error).to_string();
            assert!(
                said.contains("CONCORD_EVENTS") && said.contains(description),
                "{said}"
            );
            let named = setting.map(|setting| format!("see the setting {setting}"));
            assert_eq!(said.contains("see the setting"), named.is_some(), "{said}");
            assert!(named.is_none_or(|named| said.contains(&named)), "{said}");
        }
    }
}
