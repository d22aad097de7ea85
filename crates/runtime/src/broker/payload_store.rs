//! The object store in which large payloads travel: its bounds, what is in it, and how much of it each agent has taken.
//!
//! An agent can have the broker store an acknowledgement under any name there (record 35). What is read is therefore what a client of the
//! store has put: what says of an object what it is takes the place of what stood there before, so it is the first there, and others follow.

use std::collections::BTreeMap;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use concord_encoding::parts::{PART_BYTES, object_subject, owner_of_part, parts_of};
use concord_wire::AgentId;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::broker::{Broker, Operation, Unavailable};
use crate::settings::StorageSettings;

/// How many payloads one process fetches at a time: each takes as much memory as a payload may have.
const FETCHES_MAX: usize = 4;

/// How many payloads are looked at at once where a share seems to be used up.
const LOOKS_MAX: usize = 16;

/// The bounds of payloads that are stored and fetched.
pub(crate) struct PayloadStore {
    /// Bytes that the object store may take.
    pub(crate) store_bytes: u64,
    /// Bytes of the largest payload that is fetched.
    pub(crate) bytes_max: u64,
    /// Bytes that one agent may have in the store; 0 for no limit.
    pub(crate) agent_bytes_max: u64,
    /// Days that a payload is kept.
    pub(crate) days: u64,
    /// Bounds how many payloads are fetched at once.
    pub(crate) fetches: Semaphore,
}

impl PayloadStore {
    pub(crate) fn new(storage: &StorageSettings) -> Self {
        Self {
            store_bytes: storage.payload_store_bytes,
            bytes_max: storage.payload_bytes_max,
            agent_bytes_max: storage.payload_agent_bytes_max,
            days: storage.message_days,
            fetches: Semaphore::new(FETCHES_MAX),
        }
    }
}

/// Bytes that `owner` has put into the store by the coordinator, or each agent when there is none. A part counts as a whole one: the
/// broker counts parts. What somebody has put who may use the store directly is not counted.
pub async fn stored_by(
    broker: &Broker,
    owner: Option<&AgentId>,
) -> Result<BTreeMap<String, u64>, Unavailable> {
    let bucket = broker.layout.payload_bucket();
    let mut stored = BTreeMap::new();
    for (subject, bytes) in parts_stored(broker, owner).await? {
        if let Some(owner) = owner_of_part(&bucket, &subject) {
            *stored.entry(owner.to_owned()).or_default() += bytes;
        }
    }
    Ok(stored)
}

/// Whether `owner` has put more than so many bytes. Only where it seems so each payload is looked at: an agent can have acknowledgements
/// stored among the parts of another, and these are nobody's.
pub(crate) async fn has_more_than(
    broker: &Broker,
    owner: &AgentId,
    most: u64,
) -> Result<bool, Unavailable> {
    let stored = parts_stored(broker, Some(owner)).await?;
    if stored.iter().map(|(_, bytes)| bytes).sum::<u64>() <= most {
        return Ok(false);
    }
    let of_parts = bucket(broker).await?;
    let put = stored.into_iter().map(async |(subject, bytes)| {
        let first = first(&of_parts, &subject, 1).await?;
        Ok(first
            .is_some_and(|part| is_put(&part, &subject))
            .then_some(bytes))
    });
    let mut put = stream::iter(put).buffered(LOOKS_MAX);
    let mut sum = 0;
    while let Some(bytes) = put.try_next().await? {
        sum += bytes.unwrap_or_default();
        if sum > most {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a part was put by the coordinator: its id names the place where it stands.
fn is_put(part: &StreamMessage, subject: &str) -> bool {
    let id = part.headers.get(NATS_MESSAGE_ID);
    let place = id.and_then(|id| id.as_str().rsplit_once('-'));
    place.is_some_and(|(nuid, _)| subject.ends_with(&format!(".C.{nuid}")))
}

/// The subjects of all parts of an owner, or of all owners, with the bytes that are counted for each.
async fn parts_stored(
    broker: &Broker,
    owner: Option<&AgentId>,
) -> Result<Vec<(String, u64)>, Unavailable> {
    let failed = |error| Operation::DescribePayloadStore.failed(error);
    let subjects = parts_of(&broker.layout.payload_bucket(), owner);
    let bucket = bucket(broker).await?;
    let parts = bucket.info_with_subjects(subjects).await;
    let parts = parts.map_err(|error| Operation::DescribePayloadStore.failed(error))?;
    let counted = parts.map_ok(|(subject, number)| (subject, number as u64 * PART_BYTES));
    counted.try_collect().await.map_err(failed)
}

/// What the object store says of an object, of which it says more.
#[derive(Deserialize)]
pub(crate) struct Described {
    /// Under what its parts stand.
    #[serde(default)]
    pub(crate) nuid: String,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) digest: Option<String>,
    #[serde(default)]
    deleted: bool,
}

/// What an object is; none where there is none.
pub(crate) async fn described(
    broker: &Broker,
    object: &str,
) -> Result<Option<Described>, Unavailable> {
    let subject = object_subject(&broker.layout.payload_bucket(), object);
    let said = first(&bucket(broker).await?, &subject, 1).await?;
    let described = said.and_then(|said| serde_json::from_slice::<Described>(&said.payload).ok());
    Ok(described.filter(|it| !it.deleted && !it.nuid.is_empty()))
}

/// The first part of an object behind this place in the stream.
pub(crate) async fn part_after(
    broker: &Broker,
    nuid: &str,
    after: u64,
) -> Result<Option<StreamMessage>, Unavailable> {
    let subject = format!("$O.{}.C.{nuid}", broker.layout.payload_bucket());
    first(&bucket(broker).await?, &subject, after.saturating_add(1)).await
}

async fn first(
    bucket: &Stream<()>,
    subject: &str,
    from: u64,
) -> Result<Option<StreamMessage>, Unavailable> {
    match bucket.get_first_raw_message_by_subject(subject, from).await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(Operation::FetchPayload.failed(error)),
    }
}

/// The stream that is the object store.
async fn bucket(broker: &Broker) -> Result<Stream<()>, Unavailable> {
    let name = format!("OBJ_{}", broker.layout.payload_bucket());
    let stream = broker.jetstream.get_stream_no_info(name).await;
    stream.map_err(|error| Operation::FetchPayload.failed(error))
}

/// Bytes that one agent may have in the store; no limit when absent.
pub fn agent_bytes_max(broker: &Broker) -> Option<u64> {
    Some(broker.payload_store.agent_bytes_max).filter(|most| *most > 0)
}
