//! The watchdog: finds deadlines past due that nobody fired, as after a broker was restored from a backup or a stream
//! was purged, and fires them.
//!
//! Each process keeps the open deadlines in memory, read from the events themselves and not from the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::{Deadline, FiredBy};
use concord_runtime::delivery::{ErrorChain, Failure, HandleError};
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Consistency, Ports, ScannedEvent};
use concord_wire::{Timestamp, Token};

use crate::fire::{DeadlineState, Firing};

/// How often a round waits for a rush of deadlines, a second at most each time.
const WAITS_MAX: usize = 5;

/// The duty of looking for deadlines that nobody fired.
const DUTY: &str = "watchdog";

type Key = (Aggregate, Token);
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps an account of all open deadlines, and fires those that are overdue.
pub struct Watchdog<P> {
    firing: Arc<Firing<P>>,
    grace_ms: u64,
    open: Open,
    /// First sequence not read yet.
    next: u64,
}

/// Open deadlines, by aggregate and by time.
#[derive(Default)]
struct Open {
    by_aggregate: BTreeMap<Key, Vec<Deadline>>,
    by_due: BTreeSet<(Timestamp, Key, Token)>,
}

impl Open {
    fn set(&mut self, key: Key, deadlines: Vec<Deadline>) {
        for deadline in self.by_aggregate.remove(&key).unwrap_or_default() {
            self.by_due
                .remove(&(deadline.due, key.clone(), deadline.name));
        }
        if deadlines.is_empty() {
            return;
        }
        self.by_due.extend(
            deadlines
                .iter()
                .map(|d| (d.due, key.clone(), d.name.clone())),
        );
        self.by_aggregate.insert(key, deadlines);
    }

    fn overdue(&self, before: Timestamp) -> Vec<(Key, Deadline)> {
        let passed = self.by_due.iter().take_while(|(due, _, _)| *due < before);
        passed
            .map(|(due, key, name)| {
                (
                    key.clone(),
                    Deadline {
                        name: name.clone(),
                        due: *due,
                    },
                )
            })
            .collect()
    }
}

impl<P: Ports> Watchdog<P> {
    pub(crate) fn new(firing: Arc<Firing<P>>, grace_ms: u64) -> Self {
        Self {
            firing,
            grace_ms,
            open: Open::default(),
            next: 1,
        }
    }

    /// Reads the events since the last round, and fires the deadlines that are overdue.
    pub async fn round(&mut self) -> Result<(), AnyError> {
        self.read_new_events().await?;
        let metrics = &self.firing.service.metrics;
        metrics
            .deadlines_open
            .set(i64::try_from(self.open.by_due.len()).unwrap_or(i64::MAX));
        let before = Timestamp::from_unix_millis(
            self.firing
                .now()
                .unix_millis()
                .saturating_sub_unsigned(self.grace_ms),
        );
        for ((aggregate, id), deadline) in self.open.overdue(before) {
            match self
                .firing
                .state_of(aggregate, &id, &deadline.name, Consistency::Leader)
                .await
            {
                Ok(DeadlineState::Open { due, trace }) if due == deadline.due => {
                    tracing::warn!(%aggregate, %id, name = %deadline.name, %due, "Nobody fired a deadline; firing it.");
                    let fired = self
                        .firing
                        .fire(aggregate, &id, deadline.clone(), FiredBy::Watchdog, trace)
                        .await;
                    fired.map_err(into_error)?;
                    metrics.watchdog_fired.inc();
                    self.open.set((aggregate, id), Vec::new());
                }
                // Closed or moved by an event that is read in the next round.
                Ok(DeadlineState::Open { .. } | DeadlineState::Closed) => {}
                // Its last events went to the archive before this process had read them, and are not read any more.
                Ok(DeadlineState::Gone) => self.open.set((aggregate, id), Vec::new()),
                // Such an aggregate never comes to an end; the others must not wait behind it.
                Err(HandleError::Retry(Failure::Event(error))) => {
                    let error = ErrorChain(&error);
                    tracing::error!(%aggregate, %id, %error, "The events cannot be read; their deadlines are let go.");
                    self.open.set((aggregate, id), Vec::new());
                }
                Err(problem) => return Err(into_error(problem)),
            }
        }
        Ok(())
    }

    /// Reads what was appended since the last round.
    async fn read_new_events(&mut self) -> Result<(), AnyError> {
        let open = &mut self.open;
        let each = |event: ScannedEvent| open.set((event.aggregate, event.id), event.deadlines);
        self.next = self.firing.service.ports.scan(self.next, each).await?;
        Ok(())
    }
}

/// Has the watchdog make its rounds until the service stops.
pub(crate) async fn run<P: Ports>(
    mut watchdog: Watchdog<P>,
    runner: ServiceRunner,
    interval: Duration,
) {
    let stop = runner.stop.clone();
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.cancelled() => return,
        }
        // It reads every event, so one replica does it. Whoever takes over goes on reading where it has read last.
        if !runner.replicas.has_duty(DUTY) {
            runner.metrics.deadlines_open.set(0);
            continue;
        }
        // It reads every event that was stored since the last round, and in a burst these are thousands. Whatever nobody
        // fires is late by then; the rounds do not stop for a burst that does not end.
        for _ in 0..WAITS_MAX {
            tokio::select! {
                () = runner.give_way() => {}
                () = stop.cancelled() => return,
            }
        }
        if let Err(error) = watchdog.round().await {
            tracing::warn!(error = %ErrorChain(&*error), "The watchdog's round failed; the next follows.");
        }
    }
}

fn into_error(problem: HandleError) -> AnyError {
    match problem {
        HandleError::Refused(fault) => Box::new(fault),
        HandleError::Retry(failure) => Box::new(failure),
        HandleError::DeadLetter(why) => why.into(),
    }
}
