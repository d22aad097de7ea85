//! The watchdog: finds deadlines past due that nobody fired, as after a broker was restored from a backup or a stream
//! was purged, and fires them.
//!
//! Each process keeps the open deadlines in memory, read from the events themselves and not from the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::{Deadline, FiredBy};
use concord_runtime::delivery::{Ack, ErrorChain, Failure, HandleError};
use concord_runtime::event_store::{self, step};
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Consistency, Ports, ScannedEvent};
use concord_wire::{Timestamp, Token};

use crate::fire::{DeadlineState, Firing};

/// How often a round waits for a rush of deadlines, a second at most each time.
const WAITS_MAX: usize = 5;

/// So many deadlines in a row for which the broker did nothing end a round: it is the broker that fails, and each is waited for.
const UNANSWERED_MAX: usize = 8;

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

    /// Lets go of one deadline. The others of its aggregate stay: no further event of it may come that would state them.
    fn let_go(&mut self, key: &Key, deadline: &Deadline) {
        let left = self.by_aggregate.get(key).into_iter().flatten();
        let left = left.filter(|one| *one != deadline).cloned().collect();
        self.set(key.clone(), left);
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

/// What has become of an overdue deadline.
enum Looked {
    /// An event says so that is read in the next round.
    Waits,
    /// It was fired, or what has it is archived.
    IsDone,
    /// Nothing is left of its aggregate that could be read.
    IsGone,
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

    /// Reads the events since the last round, and fires the deadlines that are overdue. The first failure is returned at the end: what is
    /// due first comes first in every round, and the others must not wait behind it.
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
        let (mut failed, mut unanswered) = (None, 0);
        for (key, deadline) in self.open.overdue(before) {
            let looked = self.look_at(&key, &deadline).await;
            unanswered = match &looked {
                Err(problem) if is_of_broker(problem) => unanswered + 1,
                _ => 0,
            };
            match looked {
                Ok(Looked::Waits) => {}
                Ok(Looked::IsDone) => self.open.let_go(&key, &deadline),
                Ok(Looked::IsGone) => self.open.set(key, Vec::new()),
                Err(problem) => {
                    let error = into_error(problem);
                    let (aggregate, id) = &key;
                    tracing::warn!(%aggregate, %id, name = %deadline.name, error = %ErrorChain(&*error), "A deadline could not be fired; the next round tries again.");
                    failed.get_or_insert(error);
                }
            }
            if unanswered == UNANSWERED_MAX {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Fires an overdue deadline, if it is open.
    async fn look_at(
        &self,
        (aggregate, id): &Key,
        deadline: &Deadline,
    ) -> Result<Looked, HandleError> {
        let firing = &self.firing;
        let state = firing.state_of(*aggregate, id, &deadline.name, Consistency::Leader);
        match state.await {
            Ok(DeadlineState::Open { due, trace }) if due == deadline.due => {
                tracing::warn!(%aggregate, %id, name = %deadline.name, %due, "Nobody fired a deadline; firing it.");
                let by = FiredBy::Watchdog;
                let fired = firing.fire(*aggregate, id, deadline.clone(), by, trace);
                let fired = was_fired(fired.await)?;
                if fired {
                    firing.service.metrics.watchdog_fired.inc();
                } else {
                    tracing::info!(%aggregate, %id, name = %deadline.name, "What has this deadline is archived; it is let go.");
                }
                Ok(Looked::IsDone)
            }
            // Closed or moved by an event that is read in the next round.
            Ok(DeadlineState::Open { .. } | DeadlineState::Closed) => Ok(Looked::Waits),
            // Its last events went to the archive before this process had read them, and are not read any more.
            Ok(DeadlineState::Gone) => Ok(Looked::IsGone),
            // Such an aggregate never comes to an end.
            Err(HandleError::Retry(Failure::Event(error))) => {
                let error = ErrorChain(&error);
                tracing::error!(%aggregate, %id, %error, "The events cannot be read; their deadlines are let go.");
                Ok(Looked::IsGone)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Reads what was appended since the last round. What was read stays known where it fails, and the next round goes on from there.
    async fn read_new_events(&mut self) -> Result<(), AnyError> {
        let open = &mut self.open;
        let each = |event: ScannedEvent| open.set((event.aggregate, event.id), event.deadlines);
        let ports = &self.firing.service.ports;
        Ok(ports.scan(&mut self.next, each).await?)
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
        // It reads every event, so one replica does it. Whoever takes over goes on where it has read last itself: a process that has
        // not had the duty yet begins with the first event.
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

/// Whether a deadline was fired, and not refused: what has it was archived meanwhile, and nothing more happens to it.
fn was_fired(fired: Result<Ack, HandleError>) -> Result<bool, HandleError> {
    match fired {
        Ok(_) => Ok(true),
        Err(HandleError::Refused(_)) => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Whether the broker did not do it, which may concern every deadline.
fn is_of_broker(problem: &HandleError) -> bool {
    use event_store::Error::Unavailable;
    let HandleError::Retry(failure) = problem else {
        return false;
    };
    match failure {
        Failure::Broker(_) | Failure::EventStore(Unavailable(_)) => true,
        Failure::Step(step::Error::EventStore { source, .. }) => matches!(source, Unavailable(_)),
        _ => false,
    }
}

fn into_error(problem: HandleError) -> AnyError {
    match problem {
        HandleError::Refused(fault) => Box::new(fault),
        HandleError::Retry(failure) => Box::new(failure),
        HandleError::DeadLetter(why) => why.into(),
    }
}

#[cfg(test)]
mod tests {
    use concord_runtime::broker::Operation;
    use concord_wire::Fault;

    use super::*;

    fn deadline(name: &str, due: i64) -> Deadline {
        Deadline {
            name: Token::new(name).unwrap(),
            due: Timestamp::from_unix_millis(due),
        }
    }

    #[test]
    fn the_other_deadlines_of_what_has_one_that_was_fired_are_watched_on() {
        let [one, other] = ["c-1", "c-2"].map(|id| (Aggregate::Case, Token::fixed(id)));
        let (findings, case) = (deadline("findings", 1_000), deadline("case", 5_000));
        let mut open = Open::default();
        open.set(one.clone(), vec![findings.clone(), case.clone()]);
        open.set(other.clone(), vec![findings.clone()]);
        let due = |open: &Open, at| open.overdue(Timestamp::from_unix_millis(at));
        assert_eq!(due(&open, 2_000).len(), 2);
        open.let_go(&one, &findings);
        assert_eq!(due(&open, 2_000), [(other.clone(), findings.clone())]);
        assert_eq!(due(&open, 6_000).last(), Some(&(one.clone(), case.clone())));
        // One that has moved meanwhile is another.
        open.let_go(&one, &deadline("case", 4_000));
        assert_eq!(due(&open, 6_000).len(), 2);
        open.let_go(&one, &case);
        open.let_go(&other, &findings);
        assert!(open.by_aggregate.is_empty() && open.by_due.is_empty());
    }

    #[test]
    fn what_is_refused_is_let_go_and_what_fails_is_told_from_a_broker_that_fails() {
        assert!(matches!(was_fired(Ok(Ack::Acknowledge)), Ok(true)));
        let refused = HandleError::Refused(Fault::invalid("", "It is archived.", "Open another."));
        assert!(matches!(was_fired(Err(refused)), Ok(false)));
        let silent = || event_store::Error::Unavailable(Operation::ReadMessage.failed("no answer"));
        let step = |source| step::Error::EventStore {
            aggregate: "deadline/d-1".to_owned(),
            source,
        };
        for (problem, is_silent) in [
            (HandleError::from(silent()), true),
            (step(silent()).into(), true),
            (
                step(event_store::Error::NotFound { sequence: 7 }).into(),
                false,
            ),
            (HandleError::DeadLetter("no".to_owned()), false),
        ] {
            assert_eq!(is_of_broker(&problem), is_silent, "{problem:?}");
            assert!(was_fired(Err(problem)).is_err());
        }
    }
}
