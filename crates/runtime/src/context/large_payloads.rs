//! The room for the large payloads that are worked on at once: that of a process, or that of a part of it whose work takes long.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// All room, in kilobytes.
const ROOM_KB: u32 = 16 << 10;
/// A payload is in memory as it was fetched and as what was read of it.
const COPIES: u64 = 2;

/// The room for large payloads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LargePayloads(Arc<Semaphore>);

impl Default for LargePayloads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_KB as usize)))
    }
}

impl LargePayloads {
    /// Waits for the room of a payload of so many bytes, first come, first served. One that is larger than all room has all of it.
    pub(crate) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let needed = bytes.saturating_mul(COPIES).div_ceil(1_024);
        let needed = u32::try_from(needed).unwrap_or(u32::MAX).min(ROOM_KB);
        // It is never closed.
        Arc::clone(&self.0).acquire_many_owned(needed).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_is_worked_on_at_once_is_bounded_in_bytes_and_one_always_fits() {
        let rooms = LargePayloads::default();
        let huge = rooms.take(u64::MAX).await;
        assert!(rooms.take(1).now_or_never().is_none());
        drop(huge);
        let _one = rooms.take(6 << 20).await;
        assert!(rooms.take(6 << 20).now_or_never().is_none());
        assert!(rooms.take(1 << 20).now_or_never().is_some());
    }
}
