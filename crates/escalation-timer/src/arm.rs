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
/// How many closed deadlines are remembered, in case the event that opened one is still to come. One that is forgotten too
/// soon is armed in vain, and seen through when it is delivered.
const CLOSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);

type Key = (Aggregate, Token, Token);

/// Arms and cancels what each event opens and closes.
pub(crate) struct ArmHandler<P> {
    service: ServiceContext<P>,
    schedule: Schedule<P>,
    known: Mutex<Known>,
}

struct Known {
    /// Deadlines held back, with the sequence of the event that opened each.
    held: BTreeMap<Key, (u64, Arc<Notify>)>,
    /// Deadlines that have closed, with the sequence of the event that closed each last.
    closed: LruCache<Key, u64>,
}

impl<P: Ports> ArmHandler<P> {
    pub(crate) fn new(service: &ServiceContext<P>, schedule: Schedule<P>) -> Self {
        Self {
            service: service.clone(),
            schedule,
            known: Mutex::new(Known {
                held: BTreeMap::new(),
                closed: LruCache::new(CLOSED_MAX),
            }),
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
                if self
                    .closes_soon(
                        (aggregate, id.clone(), deadline.name.clone()),
                        sequence,
                        &deadline,
                    )
                    .await
                {
                    return Ok(());
                }
                Ok(self.schedule.arm(aggregate, id, &deadline).await?)
            }
            TimerAction::Cancel(name) => {
                if self.close((aggregate, id.clone(), name.clone()), sequence) {
                    return Ok(());
                }
                Ok(self.schedule.cancel(aggregate, id, &name).await?)
            }
        }
    }

    /// Remembers that a deadline has closed; true when it was held back and the broker need not hear of it.
    fn close(&self, key: Key, sequence: u64) -> bool {
        self.known(|known| {
            let waiting = known
                .held
                .get(&key)
                .filter(|(opened, _)| *opened < sequence);
            let waited = waiting.map(|(_, waiting)| waiting.notify_one()).is_some();
            known.closed.put(key, sequence);
            waited
        })
    }

    /// Holds a far deadline back for a moment; true when it has closed meanwhile, or before its opening was seen.
    async fn closes_soon(&self, key: Key, opened: u64, deadline: &Deadline) -> bool {
        let waiting = Arc::new(Notify::new());
        let closed = self.known(|known| {
            let closed = known
                .closed
                .get(&key)
                .is_some_and(|closed| *closed > opened);
            if !closed {
                known
                    .held
                    .insert(key.clone(), (opened, Arc::clone(&waiting)));
            }
            closed
        });
        if closed {
            return true;
        }
        let ports = &self.service.ports;
        let hold = if deadline.due.millis_since(ports.now()) < NEAR_MS {
            Duration::ZERO
        } else {
            HOLD
        };
        let has_closed = tokio::select! {
            biased;
            () = waiting.notified() => true,
            () = ports.sleep(hold) => false,
        };
        // Only the own entry: the same deadline may be held back again for a later event.
        self.known(|known| match known.held.get(&key) {
            Some((_, own)) if Arc::ptr_eq(own, &waiting) => known.held.remove(&key),
            _ => None,
        });
        has_closed
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
