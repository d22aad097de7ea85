//! The bounds of the object store in which large payloads travel.

use tokio::sync::Semaphore;

use crate::settings::StorageSettings;

/// How many payloads one process fetches at a time: each takes as much memory as a payload may have.
const FETCHES_MAX: usize = 4;

/// The bounds of payloads that are stored and fetched.
pub(crate) struct PayloadStore {
    /// Bytes that the object store may take.
    pub(crate) store_bytes: u64,
    /// Bytes of the largest payload that is fetched.
    pub(crate) bytes_max: u64,
    /// Bounds how many payloads are fetched at once.
    pub(crate) fetches: Semaphore,
}

impl PayloadStore {
    pub(crate) fn new(storage: &StorageSettings) -> Self {
        Self {
            store_bytes: storage.payload_store_bytes,
            bytes_max: storage.payload_bytes_max,
            fetches: Semaphore::new(FETCHES_MAX),
        }
    }
}
