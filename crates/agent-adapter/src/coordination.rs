//! How well agents help each other, for `/metrics`.
//!
//! Every replica hears everything that agents say and whom it wakes, since an answer means nothing without its question; a message
//! counts in the one replica that the broker gives it to in a queue group. So the replicas' counters can be added up. Nothing is
//! stored and nothing acknowledged: what is said while a replica has no connection is missing from its counters, and `concord metrics`
//! has it. A message that its sender publishes again may count twice where the broker gives the copy to another replica.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_domain::coordination_metrics::{
    Counted, Feedback, Follow, Limits, Said, What, leads_by_card,
};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::{StoredEvent, WakeEvent};
use concord_runtime::codec::ObservedMessage;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::metrics::{FeedbackLabels, Metrics, ResultLabel, RouteLabel};
use concord_runtime::{Directory, service::clock};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, dialect};
use futures::{Stream, StreamExt};

use crate::AnyError;
use crate::settings::CoordinationSettings;

mod ownership;

use ownership::Share;

/// How often it is looked whose time to answer is over.
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);
/// The queue group in which each message counts once.
const GROUP: &str = "agent-adapter-coordination";

/// Begins to count.
pub(crate) async fn start(
    shell: &ServiceRunner,
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
    let counting = Arc::new(Counting {
        state: Mutex::new((Follow::new(limits, leads), Share::default())),
        metrics: shell.metrics.clone(),
    });
    counting.hear(shell).await?;
    counting.keep_time(shell);
    if follow_cards {
        counting.follow_leads(shell, directory);
    }
    Ok(())
}

struct Counting {
    state: Mutex<(Follow, Share)>,
    metrics: Metrics,
}

impl Counting {
    /// Hears messages on both lanes, and whom they wake.
    async fn hear(self: &Arc<Self>, shell: &ServiceRunner) -> Result<(), AnyError> {
        let (broker, subjects) = (&shell.broker, shell.broker.subjects());
        for lane in [Lane::Urgent, Lane::Normal] {
            let said = broker.listen(subjects.all(lane.as_str()), None).await?;
            let own = broker
                .listen(subjects.all(lane.as_str()), Some(GROUP))
                .await?;
            self.each(shell, said, |counting, shell, message| {
                let Some(envelope) = envelope(shell, message) else {
                    return;
                };
                let said = Said::of(&envelope, clock::now());
                counting.change(|follow, _| follow.said(&said));
            });
            self.each(shell, own, |counting, shell, message| {
                let Some(envelope) = envelope(shell, message) else {
                    return;
                };
                let counted = counting.with(|_, share| share.own(&envelope.message_id));
                counted
                    .into_iter()
                    .for_each(|what| count(&counting.metrics, what));
            });
        }
        let decided = broker
            .listen(subjects.event_of_kind(Aggregate::Wake, "decided"), None)
            .await?;
        self.each(shell, decided, |counting, _, message| {
            // Where it will be stored is not known yet, and does not matter here.
            if let Ok(StoredEvent {
                event: WakeEvent::Decided(mut decided),
                ..
            }) = StoredEvent::decode(&message.payload, 0)
            {
                // What is heard as it is published has no place either.
                decided.said.message_id = decided.said.message_id.without_place();
                counting.change(|follow, _| follow.woken(&decided));
            }
        });
        Ok(())
    }

    fn each(
        self: &Arc<Self>,
        shell: &ServiceRunner,
        mut heard: impl Stream<Item = ObservedMessage> + Send + Unpin + 'static,
        take: impl Fn(&Self, &ServiceRunner, &ObservedMessage) + Send + 'static,
    ) {
        let (counting, shared) = (Arc::clone(self), shell.clone());
        shell.spawn(async move {
            let stop = shared.stop.clone();
            while let Some(Some(message)) = stop.run_until_cancelled(heard.next()).await {
                take(&counting, &shared, &message);
            }
        });
    }

    /// Counts who has not answered in time.
    fn keep_time(self: &Arc<Self>, shell: &ServiceRunner) {
        let (counting, stop) = (Arc::clone(self), shell.stop.clone());
        shell.spawn(async move {
            let mut due = tokio::time::interval(SETTLE_INTERVAL);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while stop.run_until_cancelled(due.tick()).await.is_some() {
                counting.change(|follow, _| follow.settle(clock::now()));
            }
        });
    }

    /// Keeps to the cards that say that their agents lead.
    fn follow_leads(self: &Arc<Self>, shell: &ServiceRunner, directory: &Arc<Directory>) {
        let (counting, directory, stop) =
            (Arc::clone(self), Arc::clone(directory), shell.stop.clone());
        let mut changes = directory.changes();
        shell.spawn(async move {
            loop {
                let mut leads = BTreeSet::new();
                directory.each(|_, state| leads.extend(leads_by_card(&state.card)));
                counting.with(|follow, _| follow.lead(leads));
                match stop.run_until_cancelled(changes.changed()).await {
                    Some(Ok(())) => {}
                    Some(Err(_)) | None => return,
                }
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Follow, &mut Share) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (follow, share) = &mut *state;
        change(follow, share)
    }

    /// What follows from something that was heard counts here, or elsewhere.
    fn change(&self, change: impl FnOnce(&mut Follow, &mut Share) -> Vec<Counted>) {
        let here = self.with(|follow, share| {
            let counted = change(follow, share);
            counted
                .into_iter()
                .filter_map(|one| share.counted(one))
                .collect::<Vec<_>>()
        });
        here.into_iter().for_each(|what| count(&self.metrics, what));
    }
}

/// What was said, in whatever dialect; none where it is no message.
fn envelope(shell: &ServiceRunner, message: &ObservedMessage) -> Option<Envelope> {
    let subject = shell.broker.subjects().parse(&message.subject).ok()?;
    let declared = message.dialect.as_deref().and_then(Dialect::parse);
    Some(dialect::read(&message.payload, declared, &subject).ok()?.0)
}

fn count(metrics: &Metrics, what: What) {
    match what {
        What::Message { through_lead } => {
            let route = if through_lead { "lead" } else { "peer" };
            metrics
                .agent_messages
                .get_or_create(&RouteLabel { route })
                .inc();
        }
        What::Session => {
            metrics.sessions.inc();
        }
        What::Collaboration => {
            metrics.collaboration_events.inc();
        }
        What::Asked => count_help(metrics, "asked"),
        What::Unanswered => count_help(metrics, "unanswered"),
        #[allow(clippy::cast_precision_loss)] // Milliseconds, far below 2^52.
        What::Helped { after_ms } => {
            metrics.peer_help_seconds.observe(after_ms as f64 / 1_000.0);
            count_help(metrics, "answered");
        }
        What::Woken { .. } => {}
        What::Feedback { matched, feedback } => {
            let feedback = match feedback {
                Feedback::Accepted => "accepted",
                Feedback::Declined => "declined",
                Feedback::Silent => "silent",
            };
            let by = if matched { "match" } else { "name" };
            metrics
                .wake_feedback
                .get_or_create(&FeedbackLabels { by, feedback })
                .inc();
        }
    }
}

fn count_help(metrics: &Metrics, result: &'static str) {
    metrics
        .peer_help
        .get_or_create(&ResultLabel { result })
        .inc();
}
