//! Counts how well agents help each other, for `/metrics`. The tracker that counts is the one of the domain, as for
//! `concord metrics`.
//!
//! One replica counts, because an answer means nothing without its question; another begins when that one goes. The counters of
//! all replicas can be added up. Nothing is stored and nothing is acknowledged: what is published while nobody counts, or while
//! the one that counts has no connection, is missing from the counters; `concord metrics` has it. For a moment after a replica
//! has come or gone, two may count.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_domain::coordination_metrics::{
    Counted, Limits, TrackedMessage, Tracker, leads_by_card,
};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::{StoredEvent, WakeEvent};
use concord_runtime::broker::Unavailable;
use concord_runtime::codec::ObservedMessage;
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Directory, service::clock};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, dialect};
use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::AnyError;
use crate::settings::CoordinationSettings;

mod metrics;

use metrics::CoordinationMetrics;

/// How often the requests are settled whose time for an answer is over.
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);
/// The duty of counting.
const DUTY: &str = "coordination";

/// Begins to count.
pub(crate) async fn start(
    runner: &ServiceRunner,
    settings: &CoordinationSettings,
    directory: &Arc<Directory>,
) -> Result<(), AnyError> {
    if !settings.enabled {
        return Ok(());
    }
    let limits = Limits {
        window_ms: settings.window_ms,
        ..Limits::default()
    };
    let leads: BTreeSet<AgentId> = settings.leads.iter().cloned().collect();
    let follow_cards = leads.is_empty();
    let counter = Arc::new(CoordinationCounter {
        tracker: Mutex::new(Tracker::new(limits, leads.clone())),
        metrics: CoordinationMetrics::registered(&runner.metrics),
    });
    let (shared, directory) = (runner.clone(), Arc::clone(directory));
    runner.spawn(async move {
        let runner = shared;
        while !runner.stop.is_cancelled() {
            let own = runner.replicas.until_duty(DUTY, true);
            if runner.stop.run_until_cancelled(own).await.is_none() {
                return;
            }
            counter.with(|tracker| *tracker = Tracker::new(limits, leads.clone()));
            let over = runner.stop.child_token();
            let counting = counter.count_until(&runner, &over);
            if let Err(error) = counting.await {
                tracing::warn!(%error, "Coordination is not counted; trying again.");
                over.cancel();
                tokio::time::sleep(SETTLE_INTERVAL).await;
                continue;
            }
            if follow_cards {
                counter.follow_leads(&runner, &directory, &over);
            }
            let lost = runner.replicas.until_duty(DUTY, false);
            over.run_until_cancelled(lost).await;
            over.cancel();
        }
    });
    Ok(())
}

struct CoordinationCounter {
    tracker: Mutex<Tracker>,
    metrics: CoordinationMetrics,
}

impl CoordinationCounter {
    /// Receives the messages of both lanes, and the decisions whom they wake, and settles what was not answered in time.
    async fn count_until(
        self: &Arc<Self>,
        runner: &ServiceRunner,
        over: &CancellationToken,
    ) -> Result<(), Unavailable> {
        let broker = &runner.broker;
        let subjects = broker.subjects();
        for lane in [Lane::Urgent, Lane::Normal] {
            let all = broker.listen(subjects.all(lane.as_str())).await?;
            self.each((runner, over), all, |counter, runner, message| {
                if let Some(envelope) = envelope(runner, message) {
                    let said = TrackedMessage::of(&envelope, clock::now());
                    counter.change(|tracker| tracker.message(&said));
                }
            });
        }
        let decided = subjects.event_of_kind(Aggregate::Wake, "decided");
        let decided = broker.listen(decided).await?;
        self.each((runner, over), decided, |counter, _, message| {
            // Its sequence is not known before it is stored, and does not matter here.
            if let Ok(StoredEvent {
                event: WakeEvent::Decided(mut decided),
                ..
            }) = StoredEvent::decode(&message.payload, 0)
            {
                // A message that is received as it is published has no sequence either.
                decided.said.message_id = decided.said.message_id.without_sequence();
                counter.change(|tracker| tracker.woken(&decided));
            }
        });
        self.settle_regularly(runner, over);
        Ok(())
    }

    fn each(
        self: &Arc<Self>,
        (runner, over): (&ServiceRunner, &CancellationToken),
        mut messages: impl Stream<Item = ObservedMessage> + Send + Unpin + 'static,
        take: impl Fn(&Self, &ServiceRunner, &ObservedMessage) + Send + 'static,
    ) {
        let (counter, shared, over) = (Arc::clone(self), runner.clone(), over.clone());
        runner.spawn(async move {
            while let Some(Some(message)) = over.run_until_cancelled(messages.next()).await {
                take(&counter, &shared, &message);
            }
        });
    }

    /// Settles the requests that were not answered in time.
    fn settle_regularly(self: &Arc<Self>, runner: &ServiceRunner, over: &CancellationToken) {
        let (counter, over) = (Arc::clone(self), over.clone());
        runner.spawn(async move {
            let mut due = tokio::time::interval(SETTLE_INTERVAL);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while over.run_until_cancelled(due.tick()).await.is_some() {
                counter.change(|tracker| tracker.close_expired(clock::now()));
            }
        });
    }

    /// Follows the cards, which say whose agents lead.
    fn follow_leads(
        self: &Arc<Self>,
        runner: &ServiceRunner,
        directory: &Arc<Directory>,
        over: &CancellationToken,
    ) {
        let (counter, directory, over) = (Arc::clone(self), Arc::clone(directory), over.clone());
        let mut changes = directory.changes();
        runner.spawn(async move {
            loop {
                let mut leads = BTreeSet::new();
                directory.each(|_, state| leads.extend(leads_by_card(&state.card)));
                counter.with(|tracker| tracker.set_leads(leads));
                match over.run_until_cancelled(changes.changed()).await {
                    Some(Ok(())) => {}
                    Some(Err(_)) | None => return,
                }
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Tracker) -> T) -> T {
        change(&mut self.tracker.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the tracker, and counts what follows from the change.
    fn change(&self, change: impl FnOnce(&mut Tracker) -> Vec<Counted>) {
        let counted = self.with(change);
        counted
            .into_iter()
            .for_each(|counted| self.metrics.count(counted.what));
    }
}

/// The message, in any dialect. None where it cannot be read.
fn envelope(runner: &ServiceRunner, message: &ObservedMessage) -> Option<Envelope> {
    let subject = runner.broker.subjects().parse(&message.subject).ok()?;
    let declared = message.dialect.as_deref().and_then(Dialect::parse);
    Some(dialect::read(&message.payload, declared, &subject).ok()?.0)
}
