//! Making the broker's scheduler agree with each fact's account of its deadlines.
//!
//! Most deadlines close long before they are due, many within the second. Arming waits a moment for that: a deadline that
//! is far enough away is held back in this process, unacknowledged, and if it closes meanwhile the broker never hears of
//! it. If the process dies meanwhile, the fact is delivered to another, which arms.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_domain::deadline::{TimerAction, timer_actions};
use concord_protocol::Token;
use concord_protocol::event::{Deadline, RecordMeta};
use concord_protocol::subject::Aggregate;
use concord_runtime::consume::{Delivery, Done, Handler, Problem};
use concord_runtime::{clock, feed};
use futures::future::try_join_all;
use tokio::sync::Notify;

use crate::schedule::Schedule;

/// How long arming waits for the deadline to close.
const HOLD: Duration = Duration::from_secs(2);
/// A deadline that is due sooner than this is armed at once.
const NEAR_MS: u64 = 5_000;

type Key = (Aggregate, Token, Token);

/// Arms and cancels what each fact opens and closes.
pub(crate) struct Arm {
    schedule: Schedule,
    held: Mutex<BTreeMap<Key, Arc<Notify>>>,
}

impl Arm {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self { schedule, held: Mutex::default() }
    }

    fn held<T>(&self, change: impl FnOnce(&mut BTreeMap<Key, Arc<Notify>>) -> T) -> T {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn act(&self, aggregate: Aggregate, id: &Token, action: TimerAction) -> Result<(), Problem> {
        match action {
            TimerAction::Arm(deadline) => {
                if self.closes_soon(aggregate, id, &deadline).await {
                    return Ok(());
                }
                self.schedule.arm(aggregate, id, &deadline).await
            }
            TimerAction::Cancel(name) => {
                let key = (aggregate, id.clone(), name);
                if let Some(waiting) = self.held(|held| held.remove(&key)) {
                    waiting.notify_one();
                    return Ok(());
                }
                self.schedule.cancel(aggregate, id, &key.2).await
            }
        }
    }

    /// Holds a far deadline back for a moment; true when it has closed meanwhile.
    async fn closes_soon(&self, aggregate: Aggregate, id: &Token, deadline: &Deadline) -> bool {
        if deadline.due.millis_since(clock::now()) < NEAR_MS {
            return false;
        }
        let key = (aggregate, id.clone(), deadline.name.clone());
        let closed = Arc::new(Notify::new());
        self.held(|held| held.insert(key.clone(), Arc::clone(&closed)));
        let waited = tokio::time::timeout(HOLD, closed.notified()).await;
        // Only the own entry: the same deadline may be held back again for a later fact.
        self.held(|held| match held.get(&key) {
            Some(own) if Arc::ptr_eq(own, &closed) => held.remove(&key),
            _ => None,
        });
        waited.is_ok()
    }
}

impl Handler for Arm {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        let (aggregate, id) = feed::aggregate_of(self.schedule.shell(), delivery)?;
        let meta = RecordMeta::decode(&delivery.payload)?;
        try_join_all(timer_actions(&meta).into_iter().map(|action| self.act(aggregate, &id, action))).await?;
        Ok(Done::Acknowledge)
    }
}
