//! How busy this process is.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// How much the last measurement counts beside those before it: a peak of a tenth of a second is none.
const LAST: f64 = 0.3;

/// The share of time in which the threads of this process had something to do. A thread that waits for a processor counts as busy: then
/// others may have one to spare.
pub(super) struct Busy {
    at: Instant,
    total: Duration,
    share: f64,
}

impl Busy {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            at: now,
            total: total(),
            share: 0.0,
        }
    }

    /// How busy it was lately, in percent.
    pub(super) fn measure(&mut self, now: Instant) -> u32 {
        let (passed, total) = (now.duration_since(self.at), total());
        let threads = Handle::current().metrics().num_workers().max(1);
        let share = total.saturating_sub(self.total).as_secs_f64()
            / (passed.as_secs_f64() * threads as f64).max(f64::MIN_POSITIVE);
        (self.at, self.total) = (now, total);
        self.share += LAST * (share.min(1.0) - self.share);
        (self.share * 100.0).round() as u32
    }
}

fn total() -> Duration {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers())
        .map(|worker| metrics.worker_total_busy_duration(worker))
        .sum()
}
