//! The room for messages that a process has received and is not done with: one for all of its consumers, beside a small one of each, so that
//! large messages of one do not fill the memory, and nobody with small ones waits for them.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::broker::Broker;

/// The room that all consumers share, in kilobytes.
const SHARED_KB: usize = 16 << 10;
/// That of each consumer, in kilobytes: for any message that is read, with its headers. What is larger is refused.
const OWN_KB: usize = 1_280;
/// How many bytes of messages are asked for at once. What was asked for and has not been taken has no other bound.
pub(crate) const ASKED_BYTES_MAX: usize = OWN_KB << 10;
/// How many bytes whoever reads a stream asks for at once: what the broker sends beyond 64 MiB before it is read costs the connection.
const READ_BYTES_MAX: usize = 16 << 20;

/// As many bytes as the largest message has, and no fewer than a reader of streams asks for.
pub(crate) fn bytes_max(broker: &Broker) -> usize {
    (broker.client.max_payload() * 2).max(READ_BYTES_MAX)
}

/// What the consumers of a process share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    /// One permit for each kilobyte.
    shared: Arc<Semaphore>,
    /// For a message that is larger than any that is read: of those there is one at a time.
    large: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            shared: Arc::new(Semaphore::new(SHARED_KB)),
            large: Arc::new(Semaphore::new(1)),
        }
    }
}

/// The room of one consumer.
pub(super) struct ConsumerRoom {
    own: Arc<Semaphore>,
    room: Room,
}

impl ConsumerRoom {
    pub(super) fn beside(room: &Room) -> Self {
        Self {
            own: Arc::new(Semaphore::new(OWN_KB)),
            room: room.clone(),
        }
    }

    /// Waits until there is room for so many bytes: the consumer's own, or what is left of the shared one.
    pub(super) async fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, AcquireError> {
        let kilobytes = bytes.div_ceil(1_024).clamp(1, OWN_KB);
        let kilobytes = u32::try_from(kilobytes).unwrap_or(1);
        let of = |room: &Arc<Semaphore>| Arc::clone(room).acquire_many_owned(kilobytes);
        tokio::select! {
            biased;
            own = of(&self.own) => own,
            shared = of(&self.room.shared) => shared,
        }
    }

    /// Waits until there is room for a message that is larger than any that is read.
    pub(super) async fn of_a_large_one(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.room.large).acquire_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const MIB: usize = 1 << 20;

    #[tokio::test]
    async fn large_messages_of_all_have_one_room_and_small_ones_do_not_wait_for_them() {
        let room = Room::default();
        let (flooded, quiet) = (ConsumerRoom::beside(&room), ConsumerRoom::beside(&room));
        let mut held = Vec::new();
        while let Some(taken) = flooded.take(MIB).now_or_never() {
            held.push(taken.unwrap());
        }
        assert_eq!(held.len(), 17, "16 shared, and one of its own");
        let of_quiet = quiet.take(1_000).now_or_never();
        assert!(of_quiet.is_some(), "its own");
        drop(of_quiet);
        let _one = quiet.take(MIB).now_or_never().unwrap();
        assert!(quiet.take(MIB).now_or_never().is_none());
        held.pop();
        assert!(
            quiet.take(MIB).now_or_never().is_some(),
            "what is given back is for all"
        );
    }

    #[tokio::test]
    async fn of_what_is_larger_than_any_message_that_is_read_there_is_one_at_a_time() {
        let room = Room::default();
        let (one, other) = (ConsumerRoom::beside(&room), ConsumerRoom::beside(&room));
        let large = one.of_a_large_one().await.unwrap();
        assert!(other.of_a_large_one().now_or_never().is_none());
        drop(large);
        assert!(other.of_a_large_one().now_or_never().is_some());
    }
}
