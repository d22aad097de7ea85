//! Where deliveries of one consumer wait, in this process, until they are handled.

use std::sync::Arc;

use tokio::sync::{AcquireError, Mutex, OwnedSemaphorePermit, Semaphore};

use crate::admission::deadline_burst::{Rush, TURN, Turn};

/// Deliveries of one consumer that wait for being handled, first come, first served.
pub(crate) struct Line {
    /// Bounds how many are handled at once, over all consumers of one handler.
    permits: Arc<Semaphore>,
    turn: Turn,
    /// Held by the first of the line: how many may still be taken in a rush of deadlines.
    first: Mutex<usize>,
}

impl Line {
    pub(crate) fn new(permits: Arc<Semaphore>, turn: Turn) -> Self {
        Self {
            permits,
            turn,
            first: Mutex::new(0),
        }
    }

    /// Waits for the turn of a delivery, which lasts as long as the permit. Of each consumer one delivery waits for a permit,
    /// so that none comes off badly for how much another has.
    pub(crate) async fn wait(&self, rush: &Rush) -> Result<OwnedSemaphorePermit, AcquireError> {
        let mut left = self.first.lock().await;
        match self.turn {
            Turn::First | Turn::Apart => {}
            Turn::GivesWay if *left == 0 => {
                *left = if rush.give_way().await { TURN - 1 } else { 0 }
            }
            Turn::GivesWay => *left -= 1,
        }
        Arc::clone(&self.permits).acquire_owned().await
    }
}
