//! The bounds of the object store in which large payloads travel, and how much of it each agent has taken.

use std::collections::BTreeMap;

use concord_encoding::parts::{PART_BYTES, owner_of_part, parts_of};
use concord_wire::AgentId;
use futures::TryStreamExt;
use tokio::sync::Semaphore;

use crate::broker::{Broker, Operation, Unavailable};
use crate::settings::StorageSettings;

/// How many payloads one process fetches at a time: each takes as much memory as a payload may have.
const FETCHES_MAX: usize = 4;

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
    let stream = broker
        .jetstream
        .get_stream_no_info(format!("OBJ_{bucket}"))
        .await;
    let stream = stream.map_err(|error| Operation::DescribePayloadStore.failed(error))?;
    let parts = stream.info_with_subjects(parts_of(&bucket, owner)).await;
    let mut parts = parts.map_err(|error| Operation::DescribePayloadStore.failed(error))?;
    let mut stored = BTreeMap::new();
    while let Some((subject, number)) = parts
        .try_next()
        .await
        .map_err(|error| Operation::DescribePayloadStore.failed(error))?
    {
        if let Some(owner) = owner_of_part(&bucket, &subject) {
            *stored.entry(owner.to_owned()).or_default() += number as u64 * PART_BYTES;
        }
    }
    Ok(stored)
}

/// Bytes that one agent may have in the store; no limit when absent.
pub fn agent_bytes_max(broker: &Broker) -> Option<u64> {
    Some(broker.payload_store.agent_bytes_max).filter(|most| *most > 0)
}
