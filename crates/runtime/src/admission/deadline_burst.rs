//! When thousands of deadlines fall due at one instant, they are worked on before what follows from them.
//!
//! Both share the processor and the broker. Without an order, each message that follows from the first deadlines makes
//! all other deadlines later, although nobody waits for it within the second. See `docs/adr/0031`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::topology::{ConsumerDefinition, ConsumerKind};
use tokio::time::Instant;

/// A backlog of this many deadlines is a burst: far more than cases under way bring one by one.
const BACKLOG_MIN: u64 = 250;
/// How long the number of waiting deadlines is believed that the last delivery brought. Another replica may have been
/// given the others, and then nothing more comes here.
const BELIEVED: Duration = Duration::from_millis(500);
/// The longest time for which other work is held back. Then it gets a turn, and is held back again if the burst goes on.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How often work that is held back looks whether the burst is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Which deliveries go before which while there is a burst of deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Deadlines that are due or have passed: they go first.
    Deadline,
    /// What follows from events: it is held back.
    Yielding,
    /// Neither. Somebody outside may wait for it, so it is never held back.
    Independent,
}

impl Priority {
    /// The priority of what a service's own consumer delivers.
    pub(crate) fn of(definition: &ConsumerDefinition) -> Self {
        let of_deadlines = definition
            .event
            .as_ref()
            .is_some_and(|(aggregate, _)| *aggregate == Aggregate::Deadline);
        match definition.kind {
            ConsumerKind::Due => Self::Deadline,
            ConsumerKind::Events(_) if of_deadlines => Self::Deadline,
            ConsumerKind::Events(_) | ConsumerKind::Effects(_) | ConsumerKind::Deadlines => {
                Self::Yielding
            }
            _ => Self::Independent,
        }
    }
}

/// The backlog of deadlines, as far as one process knows it: those that wait in the broker behind the last one of each
/// consumer, and those that are under way in this process.
#[derive(Debug, Default)]
pub(crate) struct DeadlineBurst(Mutex<Backlog>);

#[derive(Debug, Default)]
struct Backlog {
    /// By consumer: how many waited behind the last delivery, and when that came.
    waiting: BTreeMap<Arc<str>, (u64, Instant)>,
    under_way: u64,
}

impl Backlog {
    fn is_burst(&self, now: Instant) -> bool {
        let believed = self
            .waiting
            .values()
            .filter(|(_, at)| now.duration_since(*at) < BELIEVED);
        self.under_way + believed.map(|(waiting, _)| waiting).sum::<u64>() >= BACKLOG_MIN
    }
}

/// A deadline that was delivered and is not yet done with.
pub(crate) struct DeadlineUnderWay(Arc<DeadlineBurst>);

impl Drop for DeadlineUnderWay {
    fn drop(&mut self) {
        let mut backlog = self.0.backlog();
        debug_assert!(
            backlog.under_way > 0,
            "more deadlines ended than were begun"
        );
        backlog.under_way = backlog.under_way.saturating_sub(1);
    }
}

impl DeadlineBurst {
    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a deadline that `consumer` has delivered, with `waiting` others behind it.
    pub(crate) fn delivered(
        self: &Arc<Self>,
        consumer: &Arc<str>,
        waiting: u64,
    ) -> DeadlineUnderWay {
        let mut backlog = self.backlog();
        backlog
            .waiting
            .insert(Arc::clone(consumer), (waiting, Instant::now()));
        backlog.under_way += 1;
        DeadlineUnderWay(Arc::clone(self))
    }

    fn is_on(&self) -> bool {
        self.backlog().is_burst(Instant::now())
    }

    /// Waits while there is a burst, but no longer than a second. True when the burst still goes on.
    pub(crate) async fn give_way(&self) -> bool {
        let wait_end = Instant::now() + WAIT_MAX;
        while self.is_on() {
            if Instant::now() >= wait_end {
                return true;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(name: &str) -> Arc<str> {
        name.into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_given_way_to_until_its_backlog_is_gone() {
        let burst = Arc::new(DeadlineBurst::default());
        let due = consumer("due");
        let began = Instant::now();
        assert!(!burst.give_way().await);
        assert_eq!(began.elapsed(), Duration::ZERO, "there was no deadline");
        let mut under_way: Vec<_> = (0..BACKLOG_MIN)
            .rev()
            .map(|waiting| burst.delivered(&due, waiting))
            .collect();
        assert!(burst.is_on(), "all of them are under way");
        drop(under_way.pop());
        assert!(!burst.give_way().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_in_the_broker_counts_for_each_consumer_and_is_not_believed_for_ever() {
        let burst = Arc::new(DeadlineBurst::default());
        for name in ["elapsed", "due"] {
            drop(burst.delivered(&consumer(name), BACKLOG_MIN / 2));
        }
        assert!(burst.is_on());
        // Another replica is given the others.
        let began = Instant::now();
        assert!(!burst.give_way().await);
        let waited = began.elapsed();
        assert!(
            waited >= BELIEVED && waited <= BELIEVED + LOOK_INTERVAL,
            "{waited:?}"
        );
        drop(burst.delivered(&consumer("due"), BACKLOG_MIN));
        assert!(burst.is_on());
        drop(burst.delivered(&consumer("due"), 0));
        assert!(!burst.is_on(), "the last one came");
    }

    #[tokio::test(start_paused = true)]
    async fn other_work_gets_its_turn_in_a_burst_that_does_not_end() {
        let burst = Arc::new(DeadlineBurst::default());
        let endless = Arc::clone(&burst);
        let task = tokio::spawn(async move {
            loop {
                drop(endless.delivered(&consumer("due"), 10 * BACKLOG_MIN));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
        let began = Instant::now();
        assert!(burst.give_way().await);
        let waited = began.elapsed();
        assert!(
            waited >= WAIT_MAX && waited <= WAIT_MAX + LOOK_INTERVAL,
            "{waited:?}"
        );
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_that_come_one_by_one_are_no_burst() {
        let burst = Arc::new(DeadlineBurst::default());
        let began = Instant::now();
        for _ in 0..4 * BACKLOG_MIN {
            drop(burst.delivered(&consumer("due"), 3));
            assert!(!burst.give_way().await);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn deadlines_go_first_what_follows_yields_and_messages_are_independent() {
        let layout = concord_events::topology::Layout::default();
        let priority = |name: &str| {
            let found = layout
                .consumers()
                .into_iter()
                .find(|consumer| consumer.name == name);
            Priority::of(&found.unwrap_or_else(|| panic!("there is no consumer {name}")))
        };
        for (name, expected) in [
            ("escalation-timer-due", Priority::Deadline),
            (
                "debate-facilitator-facts-deadline-debate_elapsed",
                Priority::Deadline,
            ),
            (
                "debate-facilitator-facts-debate-escalated",
                Priority::Yielding,
            ),
            (
                "debate-facilitator-effects-debate-escalated",
                Priority::Yielding,
            ),
            (
                "escalation-timer-deadlines-debate-opened",
                Priority::Yielding,
            ),
            ("coordinator-inbox", Priority::Independent),
        ] {
            assert_eq!(priority(name), expected, "{name}");
        }
    }
}
