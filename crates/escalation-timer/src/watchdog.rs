//! The watchdog: finds deadlines past due that nobody fired, as after a broker was restored from a backup or a stream
//! was purged, and fires them.
//!
//! Each process keeps the open deadlines in memory, read from the facts themselves and not from the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{Deadline, EventMeta, FiredBy};
use concord_runtime::delivery::{ErrorChain, Failure, HandleError};
use concord_runtime::{Consistency, broker::non_event, service::clock};
use concord_wire::{Timestamp, Token};
use futures::StreamExt;

use crate::fire::{Firing, Standing};

/// How often a round waits for a rush of deadlines, a second at most each time.
const WAITS_MAX: usize = 5;

type Key = (Aggregate, Token);
type AnyError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) struct Watchdog {
    firing: Arc<Firing>,
    interval: Duration,
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

impl Watchdog {
    pub(crate) fn new(firing: Arc<Firing>, interval: Duration, grace_ms: u64) -> Self {
        Self {
            firing,
            interval,
            grace_ms,
            open: Open::default(),
            next: 1,
        }
    }

    pub(crate) async fn run(mut self) {
        let stop = self.firing.shell.stop.clone();
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.interval) => {}
                () = stop.cancelled() => return,
            }
            // It reads every fact that was stored since the last round, and in a rush these are thousands. Whatever nobody
            // fires is late by then; the rounds do not stop for a rush that does not end.
            for _ in 0..WAITS_MAX {
                tokio::select! {
                    () = self.firing.shell.give_way() => {}
                    () = stop.cancelled() => return,
                }
            }
            if let Err(error) = self.round().await {
                tracing::warn!(error = %ErrorChain(&*error), "The watchdog's round failed; the next follows.");
            }
        }
    }

    async fn round(&mut self) -> Result<(), AnyError> {
        self.read_new_facts().await?;
        let metrics = &self.firing.shell.metrics;
        metrics
            .deadlines_open
            .set(i64::try_from(self.open.by_due.len()).unwrap_or(i64::MAX));
        let before = Timestamp::from_unix_millis(
            clock::now()
                .unix_millis()
                .saturating_sub_unsigned(self.grace_ms),
        );
        for ((aggregate, id), deadline) in self.open.overdue(before) {
            match self
                .firing
                .standing(aggregate, &id, &deadline.name, Consistency::Leader)
                .await
            {
                Ok(Standing::Open { due, trace }) if due == deadline.due => {
                    tracing::warn!(%aggregate, %id, name = %deadline.name, %due, "Nobody fired a deadline; firing it.");
                    let fired = self
                        .firing
                        .fire(aggregate, &id, deadline.clone(), FiredBy::Watchdog, trace)
                        .await;
                    fired.map_err(into_error)?;
                    metrics.watchdog_fired.inc();
                    self.open.set((aggregate, id), Vec::new());
                }
                // Closed or moved by a fact that is read in the next round.
                Ok(Standing::Open { .. } | Standing::Closed) => {}
                // Such an aggregate never comes to an end; the others must not wait behind it.
                Err(HandleError::Retry(Failure::Event(error))) => {
                    let error = ErrorChain(&error);
                    tracing::error!(%aggregate, %id, %error, "The facts cannot be read; their deadlines are let go.");
                    self.open.set((aggregate, id), Vec::new());
                }
                Err(problem) => return Err(into_error(problem)),
            }
        }
        Ok(())
    }

    /// Reads what was appended since the last round, in one pass without acknowledgements.
    async fn read_new_facts(&mut self) -> Result<(), AnyError> {
        let shell = &self.firing.shell;
        let stream = shell.broker.stream(StreamKind::Events).await?;
        let last = stream.get_info().await?.state.last_sequence;
        if last < self.next {
            return Ok(());
        }
        // All facts and not only those that move deadlines: a filter of several subjects costs the broker far more.
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: self.next,
            },
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(30),
            memory_storage: true,
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(config).await?;
        let mut waiting = consumer.cached_info().num_pending;
        while waiting > 0 {
            let mut batch = consumer.fetch().max_messages(1_000).messages().await?;
            while let Some(message) = batch.next().await {
                let message = message?;
                let info = message.info()?;
                waiting = info.pending;
                self.next = info.stream_sequence + 1;
                let subject = shell.broker.subjects().parse(&message.subject);
                let Ok(SystemSubject::Event {
                    aggregate,
                    id,
                    event: fact,
                }) = subject
                else {
                    continue;
                };
                if aggregate.leaves_deadlines(&fact.as_str()) {
                    continue;
                }
                // What cannot be read, or was written by no service, says nothing about deadlines.
                if non_event::of_stored(message.headers.as_ref(), &message.payload).is_none()
                    && let Ok(meta) = EventMeta::decode(&message.payload)
                {
                    self.open.set((aggregate, id), meta.deadlines);
                }
            }
        }
        self.next = self.next.max(last + 1);
        let name = consumer.cached_info().name.clone();
        stream.delete_consumer(&name).await?;
        Ok(())
    }
}

fn into_error(problem: HandleError) -> AnyError {
    match problem {
        HandleError::Refused(fault) => Box::new(fault),
        HandleError::Retry(failure) => Box::new(failure),
        HandleError::DeadLetter(why) => why.into(),
    }
}
