//! Deliveries: what a delivery carries, who handles it, and what becomes of it. The service's worker pulls them.

pub mod as_asked;
mod cost;
pub mod dead_letter;
mod failure;
pub mod handlers;
pub mod in_time;
pub(crate) mod non_event;
mod read;
pub mod reject;
pub mod reject_all;
pub mod route;
pub mod settle;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_wire::{Fault, Timestamp};

use crate::broker::bytes_of;
use crate::ports::Headers;
use crate::settings::WorkSettings;
use crate::telemetry::trace::Trace;

pub use crate::error_chain::ErrorChain;
pub use cost::{Budget, Cost};
pub use failure::{Failure, HandleError};

/// A message or event as it was delivered.
pub struct Delivery {
    /// Its subject.
    pub subject: String,
    /// Its body.
    pub payload: Bytes,
    /// Its headers.
    pub headers: Option<Headers>,
    /// The trace context it brought.
    pub trace: Option<Trace>,
    /// The stream it is stored in.
    pub stream: String,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// How often it was delivered, this time included.
    pub deliveries: u64,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// The consumer that delivered it.
    pub consumer: Arc<str>,
    /// Why it is over its sender's limit, where its handler has to end what it begins.
    pub over_limit: Option<Box<Fault>>,
    /// What it costs beyond its own bytes, and who pays for it.
    pub cost: Cost,
}

impl Delivery {
    /// How many bytes its sender has had delivered: those of its body and of its headers.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len() + self.headers.as_ref().map_or(0, bytes_of)
    }
}

/// A delivery that was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// It need not be delivered again.
    Acknowledge,
    /// Deliver it again after this time; not a failure.
    Later(Duration),
}

/// What is done with each delivery of a consumer.
pub trait Handler: Send + Sync + 'static {
    /// Handles one delivery. May be called at the same time for others, and again for the same.
    fn handle(&self, delivery: &Delivery) -> impl Future<Output = Result<Ack, HandleError>> + Send;

    /// How long a delivery that fails is tried again.
    fn patience(&self, work: &WorkSettings) -> RetryPolicy {
        RetryPolicy::of(work)
    }

    /// Hears that a delivery was given up after all its tries, and is kept as a dead letter.
    fn exhausted(&self) {}
}

/// How long a delivery that fails is tried again. It is given up when both are over, the tries and the age: the broker
/// counts as a delivery too what this process had no time to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries before it is given up.
    pub tries_max: u64,
    /// Age before which it is not given up.
    pub age_min: Duration,
    /// Wait after the first try, doubled after each further one.
    pub wait_first: Duration,
    /// Longest wait.
    pub wait_max: Duration,
}

impl RetryPolicy {
    /// As the settings say.
    pub fn of(work: &WorkSettings) -> Self {
        let (first, max) = (Duration::from_millis(50), Duration::from_millis(6_400));
        Self::spread(work.deliveries_max, first, max)
    }

    /// Tries with growing waits between them, and as much time as these waits take together.
    pub fn spread(tries_max: u64, wait_first: Duration, wait_max: Duration) -> Self {
        let mut patience = Self {
            tries_max,
            age_min: Duration::ZERO,
            wait_first,
            wait_max,
        };
        patience.age_min = (1..tries_max)
            .map(|tried| patience.wait(tried))
            .fold(Duration::ZERO, Duration::saturating_add);
        patience
    }

    /// Whether what was tried so often, and is so old, is given up.
    pub fn is_over(&self, tried: u64, age: Duration) -> bool {
        tried >= self.tries_max && age >= self.age_min
    }

    /// The wait after so many tries.
    pub fn wait(&self, tried: u64) -> Duration {
        let doublings = u32::try_from(tried.saturating_sub(1)).unwrap_or(u32::MAX);
        self.wait_first
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(self.wait_max)
    }
}

/// Tries for which a delivery waits for what another message brings about.
const TRIES_AWAITED: u64 = 10;

impl Delivery {
    /// How long a delivery waits before it looks again for what another message brings about.
    pub const AGAIN: Duration = Duration::from_millis(500);

    /// How long before `now` it was stored.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::from_millis(now.millis_since(self.stored_at))
    }

    /// Whether it may yet wait for what another message brings about: on its first ten tries, five seconds [`Self::AGAIN`] apart, but not on
    /// the last of `deliveries_max` tries, after which it would be a dead letter.
    pub fn may_wait(&self, deliveries_max: u64) -> bool {
        is_early(self.deliveries, deliveries_max)
    }
}

fn is_early(tried: u64, deliveries_max: u64) -> bool {
    tried <= TRIES_AWAITED.min(deliveries_max.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded_and_both_tries_and_age_must_be_over() {
        let seconds = Duration::from_secs;
        let patience = RetryPolicy::spread(5, seconds(5), seconds(20));
        assert_eq!(
            [1, 2, 3, 4, 100].map(|tried| patience.wait(tried).as_secs()),
            [5, 10, 20, 20, 20]
        );
        assert_eq!(patience.age_min, seconds(55));
        for (tried, age, over) in [
            (4, 3_600, false),
            (5, 54, false),
            (5, 55, true),
            (90, 54, false),
        ] {
            assert_eq!(
                patience.is_over(tried, seconds(age)),
                over,
                "{tried} tries, {age} s"
            );
        }
    }

    #[test]
    fn a_delivery_waits_for_ten_tries_but_never_on_its_last() {
        for (tried, deliveries_max, early) in [
            (1, 20, true),
            (10, 20, true),
            (11, 20, false),
            (2, 3, true),
            (3, 3, false),
            (1, 1, false),
            (1, 0, false),
        ] {
            let is = is_early(tried, deliveries_max);
            assert_eq!(is, early, "{tried} of {deliveries_max}");
        }
    }
}
