//! Streams and consumers: created when missing, compared when there. What differs is reported, never silently changed.

use async_nats::jetstream;
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, StorageType};
use concord_events::topology::{StreamDefinition, StreamKind};

use crate::broker::{Broker, Operation, Unavailable};

mod compare;
mod consumer;

pub(crate) use compare::is_claimed;
use compare::{claimed, config, differing, row};
pub(super) use compare::{compare, expected};
pub(crate) use consumer::ACK_PENDING_MAX;
pub use consumer::{ACK_POLICY, ACK_WAIT, Changed, PullConsumer, changed};

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
            Ok(stream) => {
                let found = &stream.cached_info().config;
                is_own(&definition, found)?;
                deviations.extend(compare(&definition, found));
            }
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

fn is_own(definition: &StreamDefinition, found: &Config) -> Result<(), Unavailable> {
    let another = claimed(definition, found);
    another.map_or(
        Ok(()),
        |claimed| Err(Operation::ShareStream.failed(claimed)),
    )
}

/// Fails where a stream that there is belongs to another installation.
pub(super) async fn not_claimed(broker: &Broker) -> Result<(), Unavailable> {
    for kind in StreamKind::ALL {
        let definition = broker.layout.stream(kind);
        match broker.jetstream.get_stream(&definition.name).await {
            Ok(stream) => is_own(&definition, &stream.cached_info().config)?,
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(Operation::DescribeStream.failed(error)),
        }
    }
    Ok(())
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
