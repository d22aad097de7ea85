//! Waiting by the clock of the ports, so that the simulator's time counts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concord_runtime::ports::Clock;
use futures::future::{Either, select};

/// Waits for `future`, but no longer than `limit`. None when it took longer.
pub(crate) async fn timeout<C: Clock, F: Future>(
    clock: &C,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    let sleep = pin!(clock.sleep(limit));
    match select(pin!(future), sleep).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

/// Random pauses ("full jitter"): callers that failed together do not come again together.
#[derive(Debug)]
pub(crate) struct Jitter {
    /// A text of this process alone.
    seed: String,
    drawn: AtomicU64,
}

impl Jitter {
    /// `seed` must differ between processes.
    pub(crate) fn new(seed: String) -> Self {
        Self {
            seed,
            drawn: AtomicU64::new(0),
        }
    }

    /// A time from nothing up to `most`.
    pub(crate) fn up_to(&self, most: Duration) -> Duration {
        let mut hasher = DefaultHasher::new();
        (&self.seed, self.drawn.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
        let pause = most * part / 1_000;
        debug_assert!(pause <= most, "a pause is longer than its bound");
        pause
    }
}

/// The clock of tests, which obeys tokio's paused time.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock;

#[cfg(test)]
impl Clock for TokioClock {
    fn now(&self) -> concord_wire::Timestamp {
        concord_runtime::service::clock::now()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
