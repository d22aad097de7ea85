//! Making the broker's scheduler agree with each event's account of its deadlines.
//!
//! Most deadlines close long before they are due, many within the second. Arming waits a moment for that: a deadline that
//! is far enough away is held back in this process, unacknowledged, and if it closes meanwhile the broker never hears of
//! it. If the process dies meanwhile, the event is delivered to another, which arms.
//!
//! Events come from several consumers, so the one that closes a deadline may be seen before the one that opened it.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_domain::aggregates::deadline::{TimerAction, timer_actions};
use concord_events::Aggregate;
use concord_events::{Deadline, EventMeta};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Ports, delivery::handlers};
use concord_wire::Token;
use futures::future::try_join_all;
use lru::LruCache;
use tokio::sync::Notify;

use crate::schedule::Schedule;

/// How long arming waits for the deadline to close.
const HOLD: Duration = Duration::from_secs(2);
/// A deadline that is due sooner than this is armed at once.
const NEAR_MS: u64 = 5_000;
/// How many deadlines are remembered with the last event that moved each, in case an earlier one is still to come. One that is forgotten too
/// soon is armed in vain, and seen through when it is delivered.
const LATEST_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);

type Key = (Aggregate, Token, Token);

/// Arms and cancels what each event opens and closes.
pub(crate) struct ArmHandler<P> {
    service: ServiceContext<P>,
    schedule: Schedule<P>,
    known: Mutex<Known>,
}

/// What this process has seen of deadlines.
struct Known {
    /// Those held back, and whoever waits with each.
    held: BTreeMap<Key, Arc<Notify>>,
    /// What is known of each that was opened or closed of late.
    latest: LruCache<Key, Latest>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    /// The sequence of the last event that opened or closed it.
    sequence: u64,
    /// Whether this process has armed it, as that event says or one before.
    is_armed: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            latest: LruCache::new(LATEST_MAX),
        }
    }
}

impl Known {
    /// What was known of a deadline before this event opens or closes it; none where a later one has: then this one says nothing about it
    /// any more.
    fn change(&mut self, key: &Key, sequence: u64) -> Option<Latest> {
        let before = self.latest.get(key).copied().unwrap_or_default();
        if before.sequence > sequence {
            return None;
        }
        let latest = Latest { sequence, ..before };
        self.latest.put(key.clone(), latest);
        Some(before)
    }

    /// An event has opened a deadline, or moved it: whoever waits until it is armed, in place of whoever waits with an earlier one.
    /// None where the broker need not hear of it.
    fn open(&mut self, key: &Key, sequence: u64) -> Option<Arc<Notify>> {
        self.change(key, sequence)?;
        let waiting = Arc::new(Notify::new());
        if let Some(earlier) = self.held.insert(key.clone(), Arc::clone(&waiting)) {
            earlier.notify_one();
        }
        Some(waiting)
    }

    /// An event has closed a deadline. Whether the broker must hear of it: it has not where the deadline was held back.
    fn close(&mut self, key: &Key, sequence: u64) -> bool {
        let Some(before) = self.change(key, sequence) else {
            return false;
        };
        if let Some(latest) = self.latest.get_mut(key) {
            latest.is_armed = false;
        }
        let waiting = self.held.remove(key);
        let is_held = waiting.map(|waiting| waiting.notify_one()).is_some();
        before.is_armed || !is_held
    }

    /// Whoever waited has waited long enough, and arms the deadline: whether it is still to be armed so. A later event may have closed or moved
    /// it at the last moment, and what this one says must not be stored after that.
    fn arm(&mut self, key: &Key, waiting: &Arc<Notify>) -> bool {
        let is_own = |held: &Arc<Notify>| Arc::ptr_eq(held, waiting);
        if !self.held.get(key).is_some_and(is_own) {
            return false;
        }
        self.held.remove(key);
        if let Some(latest) = self.latest.get_mut(key) {
            latest.is_armed = true;
        }
        true
    }
}

impl<P: Ports> ArmHandler<P> {
    pub(crate) fn new(service: &ServiceContext<P>, schedule: Schedule<P>) -> Self {
        Self {
            service: service.clone(),
            schedule,
            known: Mutex::default(),
        }
    }

    fn known<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does what the event at `sequence` asks for.
    async fn act(
        &self,
        sequence: u64,
        aggregate: Aggregate,
        id: &Token,
        action: TimerAction,
    ) -> Result<(), HandleError> {
        match action {
            TimerAction::Arm(deadline) => {
                let key = (aggregate, id.clone(), deadline.name.clone());
                if self.is_moved_soon(&key, sequence, &deadline).await {
                    return Ok(());
                }
                Ok(self.schedule.arm(aggregate, id, &deadline).await?)
            }
            TimerAction::Cancel(name) => {
                let key = (aggregate, id.clone(), name.clone());
                if !self.known(|known| known.close(&key, sequence)) {
                    return Ok(());
                }
                Ok(self.schedule.cancel(aggregate, id, &name).await?)
            }
        }
    }

    /// Holds a far deadline back for a moment; true when it has been closed or moved meanwhile, or before this was seen.
    async fn is_moved_soon(&self, key: &Key, sequence: u64, deadline: &Deadline) -> bool {
        let Some(waiting) = self.known(|known| known.open(key, sequence)) else {
            return true;
        };
        let ports = &self.service.ports;
        let hold = if deadline.due.millis_since(ports.now()) < NEAR_MS {
            Duration::ZERO
        } else {
            HOLD
        };
        tokio::select! {
            biased;
            () = waiting.notified() => true,
            () = ports.sleep(hold) => !self.known(|known| known.arm(key, &waiting)),
        }
    }
}

impl<P: Ports> Handler for ArmHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let (aggregate, id) = handlers::aggregate_of(&self.service, delivery)?;
        let meta = EventMeta::decode(&delivery.payload)?;
        let actions = timer_actions(&meta).into_iter();
        try_join_all(actions.map(|action| self.act(delivery.sequence, aggregate, &id, action)))
            .await?;
        Ok(Ack::Acknowledge)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key() -> Key {
        let id = Token::fixed("c-1");
        (Aggregate::Commitment, id, Token::fixed("lease"))
    }

    fn is_told(waiting: &Notify) -> bool {
        waiting.notified().now_or_never().is_some()
    }

    /// A deadline that is moved nearer must not be armed again as it was before.
    #[test]
    fn who_waits_with_an_earlier_event_is_told_by_a_later_one() {
        let mut known = Known::default();
        let far = known.open(&key(), 5).unwrap();
        let near = known.open(&key(), 7).unwrap();
        assert!(is_told(&far) && !is_told(&near));
        assert!(!known.arm(&key(), &far), "it was moved");
        assert!(!known.close(&key(), 9), "it was held back");
        assert!(is_told(&near));
    }

    /// Nothing stays armed of what has ended.
    #[test]
    fn what_is_armed_and_moved_is_cancelled_though_its_new_time_is_held_back() {
        let mut known = Known::default();
        let first = known.open(&key(), 5).unwrap();
        assert!(known.arm(&key(), &first));
        let moved = known.open(&key(), 7).unwrap();
        assert!(known.close(&key(), 9), "the broker has its first time");
        assert!(is_told(&moved));
        assert!(!known.arm(&key(), &moved), "it has closed");
        let again = known.open(&key(), 11).unwrap();
        assert!(!known.close(&key(), 12), "the broker has nothing of it");
        assert!(is_told(&again));
    }

    #[test]
    fn an_earlier_event_that_is_seen_later_changes_nothing() {
        let mut known = Known::default();
        let near = known.open(&key(), 7).unwrap();
        assert!(known.open(&key(), 5).is_none(), "it was moved since");
        assert!(!known.close(&key(), 6), "it was opened again since");
        assert!(!is_told(&near));
        assert!(known.arm(&key(), &near));
        assert!(known.close(&key(), 8), "the broker has it");
        assert!(known.open(&key(), 7).is_none(), "it has closed");
    }

    #[test]
    fn the_same_event_that_comes_again_is_done_again() {
        let mut known = Known::default();
        let first = known.open(&key(), 5).unwrap();
        assert!(known.arm(&key(), &first));
        assert!(known.open(&key(), 5).is_some());
        assert!(known.close(&key(), 6));
        assert!(known.close(&key(), 6));
    }
}
