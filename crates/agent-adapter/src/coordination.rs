//! Counts how well agents help each other, for `/metrics`. The tracker that counts is the one of the domain, as for
//! `concord metrics`.
//!
//! Every replica receives every message and every decision whom messages wake, because an answer means nothing without its
//! question. A message counts only in the replica that the broker gives it to in a queue group, so the replicas' counters can be
//! added up. Nothing is stored and nothing is acknowledged: messages that are published while a replica has no connection are
//! missing from its counters; `concord metrics` has them. A message that its sender publishes again may count twice, where the
//! broker gives the copy to another replica.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_domain::coordination_metrics::{
    Counted, Limits, TrackedMessage, Tracker, leads_by_card,
};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::{StoredEvent, WakeEvent};
use concord_runtime::codec::ObservedMessage;
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Directory, service::clock};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, dialect};
use futures::{Stream, StreamExt};

use crate::AnyError;
use crate::settings::CoordinationSettings;

mod metrics;
mod ownership;

use metrics::CoordinationMetrics;
use ownership::Ownership;

/// How often the requests are settled whose time for an answer is over.
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);
/// The queue group in which each message counts once.
const GROUP: &str = "agent-adapter-coordination";

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
        state: Mutex::new((Tracker::new(limits, leads), Ownership::default())),
        metrics: CoordinationMetrics::registered(&runner.metrics),
    });
    counter.listen(runner).await?;
    counter.settle_regularly(runner);
    if follow_cards {
        counter.follow_leads(runner, directory);
    }
    Ok(())
}

struct CoordinationCounter {
    state: Mutex<(Tracker, Ownership)>,
    metrics: CoordinationMetrics,
}

impl CoordinationCounter {
    /// Receives the messages of both lanes, and the decisions whom they wake.
    async fn listen(self: &Arc<Self>, runner: &ServiceRunner) -> Result<(), AnyError> {
        let (broker, subjects) = (&runner.broker, runner.broker.subjects());
        for lane in [Lane::Urgent, Lane::Normal] {
            let said = broker.listen(subjects.all(lane.as_str()), None).await?;
            let own = broker
                .listen(subjects.all(lane.as_str()), Some(GROUP))
                .await?;
            self.each(runner, said, |counter, runner, message| {
                let Some(envelope) = envelope(runner, message) else {
                    return;
                };
                let said = TrackedMessage::of(&envelope, clock::now());
                counter.change(|follow, _| follow.message(&said));
            });
            self.each(runner, own, |counter, runner, message| {
                let Some(envelope) = envelope(runner, message) else {
                    return;
                };
                let counted = counter.with(|_, ownership| ownership.own(&envelope.message_id));
                counted
                    .into_iter()
                    .for_each(|what| counter.metrics.count(what));
            });
        }
        let decided = broker
            .listen(subjects.event_of_kind(Aggregate::Wake, "decided"), None)
            .await?;
        self.each(runner, decided, |counter, _, message| {
            // Its sequence is not known before it is stored, and does not matter here.
            if let Ok(StoredEvent {
                event: WakeEvent::Decided(mut decided),
                ..
            }) = StoredEvent::decode(&message.payload, 0)
            {
                // A message that is received as it is published has no sequence either.
                decided.said.message_id = decided.said.message_id.without_place();
                counter.change(|follow, _| follow.woken(&decided));
            }
        });
        Ok(())
    }

    fn each(
        self: &Arc<Self>,
        runner: &ServiceRunner,
        mut messages: impl Stream<Item = ObservedMessage> + Send + Unpin + 'static,
        take: impl Fn(&Self, &ServiceRunner, &ObservedMessage) + Send + 'static,
    ) {
        let (counter, shared) = (Arc::clone(self), runner.clone());
        runner.spawn(async move {
            let stop = shared.stop.clone();
            while let Some(Some(message)) = stop.run_until_cancelled(messages.next()).await {
                take(&counter, &shared, &message);
            }
        });
    }

    /// Settles the requests that were not answered in time.
    fn settle_regularly(self: &Arc<Self>, runner: &ServiceRunner) {
        let (counter, stop) = (Arc::clone(self), runner.stop.clone());
        runner.spawn(async move {
            let mut due = tokio::time::interval(SETTLE_INTERVAL);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while stop.run_until_cancelled(due.tick()).await.is_some() {
                counter.change(|follow, _| follow.close_expired(clock::now()));
            }
        });
    }

    /// Follows the cards, which say whose agents lead.
    fn follow_leads(self: &Arc<Self>, runner: &ServiceRunner, directory: &Arc<Directory>) {
        let (counter, directory, stop) =
            (Arc::clone(self), Arc::clone(directory), runner.stop.clone());
        let mut changes = directory.changes();
        runner.spawn(async move {
            loop {
                let mut leads = BTreeSet::new();
                directory.each(|_, state| leads.extend(leads_by_card(&state.card)));
                counter.with(|follow, _| follow.set_leads(leads));
                match stop.run_until_cancelled(changes.changed()).await {
                    Some(Ok(())) => {}
                    Some(Err(_)) | None => return,
                }
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Tracker, &mut Ownership) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (follow, ownership) = &mut *state;
        change(follow, ownership)
    }

    /// Changes the tracker. Countable follows from the change is counted here if its message belongs to this replica.
    fn change(&self, change: impl FnOnce(&mut Tracker, &mut Ownership) -> Vec<Counted>) {
        let here = self.with(|follow, ownership| {
            let counted = change(follow, ownership);
            counted
                .into_iter()
                .filter_map(|one| ownership.counted(one))
                .collect::<Vec<_>>()
        });
        here.into_iter().for_each(|what| self.metrics.count(what));
    }
}

/// The message, in any dialect. None where it cannot be read.
fn envelope(runner: &ServiceRunner, message: &ObservedMessage) -> Option<Envelope> {
    let subject = runner.broker.subjects().parse(&message.subject).ok()?;
    let declared = message.dialect.as_deref().and_then(Dialect::parse);
    Some(dialect::read(&message.payload, declared, &subject).ok()?.0)
}
