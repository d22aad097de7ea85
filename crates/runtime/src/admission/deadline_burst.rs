//! When thousands of deadlines fall due at one instant, they are worked on before what follows from them.
//!
//! Both share the processor and the broker. Without an order, each message that follows from the first deadlines makes
//! all other deadlines later, although nobody waits for it within the second. See `docs/adr/0031`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::topology::{ConsumerDefinition, ConsumerKind};
use tokio::time::Instant;

/// A backlog of this many deadlines is a burst, and so are as many that were delivered within [`WINDOW`]: far more than
/// cases under way bring one by one. A service that reads deadlines as fast as another stores them has no backlog of its
/// own, and would take the processors from the one that has.
const BURST_MIN: usize = 250;
/// How long the number of waiting deadlines is believed that the last delivery brought. Another replica may have been
/// given the others, and then nothing more comes here. Deliveries are counted over the same time.
const WINDOW: Duration = Duration::from_millis(500);
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

/// The deadlines of one process, as far as it knows them: those that wait in the broker behind the last one of each
/// consumer, those that are under way, and those that came a moment ago.
#[derive(Debug, Default)]
pub(crate) struct DeadlineBurst(Mutex<Deadlines>);

#[derive(Debug, Default)]
struct Deadlines {
    /// By consumer: how many waited behind the last delivery, and when that came.
    waiting: BTreeMap<Arc<str>, (u64, Instant)>,
    under_way: u64,
    /// When the last [`BURST_MIN`] came.
    latest: VecDeque<Instant>,
}

impl Deadlines {
    fn came(&mut self, now: Instant) {
        if self.latest.len() == BURST_MIN {
            self.latest.pop_front();
        }
        self.latest.push_back(now);
    }

    fn is_burst(&self, now: Instant) -> bool {
        let is_recent = |at: &Instant| now.duration_since(*at) < WINDOW;
        let believed = self.waiting.values().filter(|(_, at)| is_recent(at));
        let backlog = self.under_way + believed.map(|(waiting, _)| waiting).sum::<u64>();
        let many_came =
            self.latest.len() == BURST_MIN && self.latest.front().is_some_and(is_recent);
        many_came || backlog >= BURST_MIN as u64
    }
}

/// A deadline that was delivered and is not yet done with.
pub(crate) struct DeadlineUnderWay(Arc<DeadlineBurst>);

impl Drop for DeadlineUnderWay {
    fn drop(&mut self) {
        let mut deadlines = self.0.deadlines();
        debug_assert!(
            deadlines.under_way > 0,
            "more deadlines ended than were begun"
        );
        deadlines.under_way = deadlines.under_way.saturating_sub(1);
    }
}

impl DeadlineBurst {
    fn deadlines(&self) -> MutexGuard<'_, Deadlines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a deadline that `consumer` has delivered, with `waiting` others behind it.
    pub(crate) fn delivered(
        self: &Arc<Self>,
        consumer: &Arc<str>,
        waiting: u64,
    ) -> DeadlineUnderWay {
        let now = Instant::now();
        let mut deadlines = self.deadlines();
        deadlines
            .waiting
            .insert(Arc::clone(consumer), (waiting, now));
        deadlines.under_way += 1;
        deadlines.came(now);
        DeadlineUnderWay(Arc::clone(self))
    }

    fn is_on(&self) -> bool {
        self.deadlines().is_burst(Instant::now())
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
        let mut under_way: Vec<_> = (0..BURST_MIN as u64 - 1)
            .rev()
            .map(|waiting| burst.delivered(&due, waiting))
            .collect();
        assert!(!burst.is_on(), "one less is no burst");
        drop(burst.delivered(&due, 1));
        drop(under_way.pop());
        assert!(burst.is_on(), "as many came at once");
        assert!(!burst.give_way().await);
        assert_eq!(began.elapsed(), WINDOW, "no more of them came");
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_that_are_read_as_fast_as_they_are_stored_are_a_burst_too() {
        let burst = Arc::new(DeadlineBurst::default());
        let elapsed = consumer("elapsed");
        for _ in 0..BURST_MIN {
            assert!(!burst.is_on());
            drop(burst.delivered(&elapsed, 0));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(burst.is_on());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_in_the_broker_counts_for_each_consumer_and_is_not_believed_for_ever() {
        let burst = Arc::new(DeadlineBurst::default());
        for name in ["elapsed", "due"] {
            drop(burst.delivered(&consumer(name), BURST_MIN as u64 / 2));
        }
        assert!(burst.is_on());
        // Another replica is given the others.
        let began = Instant::now();
        assert!(!burst.give_way().await);
        let waited = began.elapsed();
        assert!(
            waited >= WINDOW && waited <= WINDOW + LOOK_INTERVAL,
            "{waited:?}"
        );
        drop(burst.delivered(&consumer("due"), BURST_MIN as u64));
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
                drop(endless.delivered(&consumer("due"), 10 * BURST_MIN as u64));
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
        let between = Duration::from_millis(5);
        for _ in 0..4 * BURST_MIN {
            drop(burst.delivered(&consumer("due"), 3));
            assert!(!burst.give_way().await);
            tokio::time::advance(between).await;
        }
        assert_eq!(
            began.elapsed(),
            between * 4 * BURST_MIN as u32,
            "nothing waited"
        );
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
