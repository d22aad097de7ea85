//! How full the streams are, and whether the broker stores anything.

use async_nats::HeaderMap;
use async_nats::jetstream::stream::{Config, Info, StorageType};
use concord_events::topology::StreamKind;

use crate::broker::provision::{Fill, is_missing};
use crate::broker::{Broker, Operation, Unavailable};

impl Fill {
    /// How full it is, from 0 to 1; none where it has no limit.
    pub fn ratio(&self) -> Option<f64> {
        let most = self.bytes_max.filter(|most| *most > 0)?;
        Some(self.bytes as f64 / most as f64)
    }
}

/// How full each stream of the installation is that there is.
pub async fn fills(broker: &Broker) -> Result<Vec<(StreamKind, Fill)>, Unavailable> {
    let mut fills = Vec::new();
    for kind in StreamKind::ALL {
        let info = info(broker, kind).await?;
        fills.extend(info.map(|info| (kind, fill(&info))));
    }
    Ok(fills)
}

/// What the broker says of a stream; none where there is no such stream.
pub(crate) async fn info(broker: &Broker, kind: StreamKind) -> Result<Option<Info>, Unavailable> {
    info_of(broker, &broker.layout.stream_name(kind)).await
}

/// What the broker says of the stream that holds large payloads; none where there is no such store.
pub(crate) async fn payloads(broker: &Broker) -> Result<Option<Info>, Unavailable> {
    info_of(broker, &broker.layout.payload_stream()).await
}

async fn info_of(broker: &Broker, name: &str) -> Result<Option<Info>, Unavailable> {
    match broker.jetstream.get_stream(name).await {
        Ok(stream) => Ok(Some(stream.cached_info().clone())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(Operation::DescribeStream.failed(error)),
    }
}

/// How full a stream is, by what the broker says of it.
pub(crate) fn fill(info: &Info) -> Fill {
    let most = u64::try_from(info.config.max_bytes).ok();
    Fill {
        bytes: info.state.bytes,
        bytes_max: most.filter(|most| *most > 0),
    }
}

/// What the broker's account stores, and may store.
pub async fn account(broker: &Broker) -> Result<Fill, Unavailable> {
    let account = broker.jetstream.query_account().await;
    let account = account.map_err(|error| Operation::DescribeAccount.failed(error))?;
    let most = account.limits.max_storage.map(u64::try_from);
    Ok(Fill {
        bytes: account.storage,
        bytes_max: most.and_then(Result::ok).filter(|most| *most > 0),
    })
}

/// Has the broker store a few bytes in a stream that is made for it and removed again. A broker without room answers every question, and
/// only this shows it.
pub async fn try_to_store(broker: &Broker) -> Result<(), Unavailable> {
    let token = broker.client.new_inbox().replace(['.', '_'], "");
    let name = broker
        .layout
        .subjects
        .stream_name(&format!("PROBE_{token}"));
    let subject = broker.layout.subjects.join(&["probe", &token]);
    let config = Config {
        name: name.clone(),
        subjects: vec![subject.clone()],
        storage: StorageType::File,
        max_messages: 1,
        ..Config::default()
    };
    let made = broker.jetstream.create_stream(config).await;
    made.map_err(|error| Operation::CreateStream.failed(error))?;
    let stored = broker
        .store(subject, HeaderMap::new(), "room?".into())
        .await;
    // What the write has shown is said, whether or not the stream can be removed.
    let removed = broker.jetstream.delete_stream(&name).await;
    stored.map_err(|error| Operation::StoreMessage.failed(error))?;
    removed.map_err(|error| Operation::ChangeStream.failed(error))?;
    Ok(())
}
