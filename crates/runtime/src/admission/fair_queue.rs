//! Where the deliveries of one consumer wait in this process until they are worked on.

use std::sync::Arc;

use tokio::sync::{AcquireError, Mutex, OwnedSemaphorePermit, Semaphore};

use crate::admission::deadline_burst::{DeadlineBurst, Priority};

/// How many deliveries of a consumer are worked on in one turn during a burst of deadlines. It is not what a consumer asks
/// for at once: that is a thousand where most deliveries wait, and to arm a thousand deadlines a second takes a fifth of
/// the processors.
const TURN_SIZE: usize = 64;

/// The deliveries of one consumer that wait until they are worked on: first come, first served.
pub(crate) struct FairQueue {
    /// Bounds how many deliveries are worked on at once, over all consumers of one handler.
    permits: Arc<Semaphore>,
    priority: Priority,
    /// Held by the first delivery of the queue: how many are left of the turn that a burst has granted.
    turn_left: Mutex<usize>,
}

impl FairQueue {
    pub(crate) fn new(permits: Arc<Semaphore>, priority: Priority) -> Self {
        Self {
            permits,
            priority,
            turn_left: Mutex::new(0),
        }
    }

    /// Waits until a delivery may be worked on, for as long as the permit is held. One delivery of each consumer waits
    /// for a permit, so that no consumer comes off badly for how much another has.
    pub(crate) async fn wait(
        &self,
        burst: &DeadlineBurst,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let mut turn_left = self.turn_left.lock().await;
        match self.priority {
            Priority::Deadline | Priority::Independent => {}
            Priority::Yielding if *turn_left > 0 => *turn_left -= 1,
            Priority::Yielding if burst.give_way().await => *turn_left = TURN_SIZE - 1,
            Priority::Yielding => {}
        }
        debug_assert!(*turn_left < TURN_SIZE, "a turn is larger than turns are");
        Arc::clone(&self.permits).acquire_owned().await
    }
}
