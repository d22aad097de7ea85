//! When thousands of deadlines fall due at one instant, noticing them goes before what follows from them.
//!
//! Both share the processor and the broker. Without an order each message that follows from the first deadlines makes
//! all the others later, although nobody waits for it within the second. See `docs/adr/0031`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::topology::{ConsumerDefinition, ConsumerKind};
use tokio::time::Instant;

/// Deadlines are counted over this time.
const WINDOW: Duration = Duration::from_millis(250);
/// So many deadlines in a window are a rush: a thousand a second, far more than cases under way bring one by one.
const RUSH_MIN: u32 = 250;
/// It goes on with half as many, and for so long after the last such window: what waits would otherwise be let loose by the
/// first moment in which the machine is slow, make the deadlines slower, and so be let loose for good.
const GOES_ON_MIN: u32 = RUSH_MIN / 2;
const LINGER: Duration = Duration::from_millis(500);
/// The longest rush. Then there is none for as long, so that what follows is not kept waiting by deadlines without end.
const RUSH_MAX: Duration = Duration::from_secs(10);
/// The longest that anything else waits. Then it gets a turn, and waits again if the rush goes on.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// So many deliveries are a turn. Not what a consumer asks for at once: that is a thousand where most of them wait, and
/// arming a thousand deadlines a second takes a fifth of the processors.
pub(crate) const TURN: usize = 64;

/// Whether a consumer's deliveries are deadlines, or give way to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Deadlines that are due or have elapsed.
    First,
    /// What follows from facts.
    GivesWay,
    /// Neither: somebody outside may wait for it.
    Apart,
}

impl Turn {
    /// Of a service's own consumer.
    pub(crate) fn of(definition: &ConsumerDefinition) -> Self {
        let of_deadlines = definition
            .event
            .as_ref()
            .is_some_and(|(aggregate, _)| *aggregate == Aggregate::Deadline);
        match definition.kind {
            ConsumerKind::Due => Self::First,
            ConsumerKind::Events(_) if of_deadlines => Self::First,
            ConsumerKind::Events(_) | ConsumerKind::Effects(_) | ConsumerKind::Deadlines => {
                Self::GivesWay
            }
            _ => Self::Apart,
        }
    }
}

/// What a process knows of the deadlines it is given.
#[derive(Debug, Default)]
pub(crate) struct Rush(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    window: Option<Instant>,
    count: u32,
    /// The rush that is on, or was: its first and last moment.
    began: Option<Instant>,
    until: Option<Instant>,
    /// When there may be another.
    rested: Option<Instant>,
}

impl Seen {
    /// One more deadline.
    fn count(&mut self, now: Instant) {
        if self
            .window
            .is_none_or(|began| now.duration_since(began) > WINDOW)
        {
            (self.window, self.count) = (Some(now), 0);
        }
        self.count += 1;
        let is_on = self.until.is_some_and(|until| until > now);
        let is_rested = self.rested.is_none_or(|rested| rested <= now);
        let began = match self.began.filter(|_| is_on) {
            Some(began) if self.count >= GOES_ON_MIN => began,
            None if is_rested && self.count >= RUSH_MIN => now,
            _ => return,
        };
        if now.duration_since(began) < RUSH_MAX {
            (self.began, self.until) = (Some(began), Some(now + LINGER));
        } else {
            (self.began, self.until, self.rested) = (None, None, Some(now + RUSH_MAX));
        }
    }
}

impl Rush {
    /// A deadline was delivered.
    pub(crate) fn deadline(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .count(Instant::now());
    }

    /// Waits while there is a rush, but not for ever; true when there was one to the last.
    pub(crate) async fn give_way(&self) -> bool {
        let patience = Instant::now() + WAIT_MAX;
        loop {
            let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).until;
            let now = Instant::now();
            match until {
                Some(until) if until > now && now < patience => {
                    tokio::time::sleep_until(until.min(patience)).await
                }
                other => return other.is_some_and(|until| until > now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn deadlines(rush: &Rush, count: u32, every: Duration) {
        for _ in 0..count {
            rush.deadline();
            tokio::time::advance(every).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rush_is_given_way_to_and_its_end_is_noticed() {
        let rush = Rush::default();
        let began = Instant::now();
        assert!(!rush.give_way().await);
        assert_eq!(began.elapsed(), Duration::ZERO, "there was no deadline");
        deadlines(&rush, RUSH_MIN, Duration::ZERO).await;
        assert!(!rush.give_way().await);
        let waited = began.elapsed();
        assert!(waited >= LINGER && waited < WAIT_MAX, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rush_outlasts_a_slow_moment_and_half_as_many_deadlines_keep_it_up() {
        let rush = Rush::default();
        deadlines(&rush, RUSH_MIN, Duration::ZERO).await;
        // Nothing for a while, and then so few that they would not have begun it.
        tokio::time::advance(LINGER - Duration::from_millis(10)).await;
        deadlines(&rush, GOES_ON_MIN, Duration::ZERO).await;
        let began = Instant::now();
        assert!(!rush.give_way().await);
        assert!(began.elapsed() >= LINGER);
        // The same number begins none.
        deadlines(&rush, GOES_ON_MIN, Duration::ZERO).await;
        let began = Instant::now();
        assert!(!rush.give_way().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rush_that_does_not_end_is_over_for_a_while() {
        let rush = Rush::default();
        let every = WINDOW / RUSH_MIN / 2;
        let mut pauses = Vec::new();
        let began = Instant::now();
        let is_on = || {
            rush.0
                .lock()
                .unwrap()
                .until
                .is_some_and(|until| until > Instant::now())
        };
        let mut was_on = false;
        while began.elapsed() < RUSH_MAX * 4 {
            deadlines(&rush, 1, every).await;
            if is_on() != was_on {
                was_on = !was_on;
                pauses.push(began.elapsed().as_secs());
            }
        }
        assert_eq!(pauses, [0, 10, 20, 30], "begins, ends, begins, ends");
    }

    #[tokio::test(start_paused = true)]
    async fn what_gives_way_gets_its_turn_in_a_rush_that_does_not_end() {
        let rush = std::sync::Arc::new(Rush::default());
        let endless = std::sync::Arc::clone(&rush);
        deadlines(&rush, RUSH_MIN, Duration::ZERO).await;
        let task = tokio::spawn(async move {
            loop {
                (0..10).for_each(|_| endless.deadline());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let began = Instant::now();
        assert!(rush.give_way().await);
        let waited = began.elapsed();
        assert!(
            waited >= WAIT_MAX && waited < WAIT_MAX + WINDOW,
            "{waited:?}"
        );
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_that_come_one_by_one_are_no_rush() {
        let rush = Rush::default();
        deadlines(&rush, 4 * RUSH_MIN, Duration::from_millis(2)).await;
        let began = Instant::now();
        assert!(!rush.give_way().await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn what_is_due_goes_before_what_follows_and_messages_wait_for_neither() {
        let layout = concord_events::topology::Layout::default();
        let turn = |name: &str| {
            let found = layout
                .consumers()
                .into_iter()
                .find(|consumer| consumer.name == name);
            Turn::of(&found.unwrap_or_else(|| panic!("there is no consumer {name}")))
        };
        for (name, expected) in [
            ("escalation-timer-due", Turn::First),
            (
                "debate-facilitator-facts-deadline-debate_elapsed",
                Turn::First,
            ),
            ("debate-facilitator-facts-debate-escalated", Turn::GivesWay),
            (
                "debate-facilitator-effects-debate-escalated",
                Turn::GivesWay,
            ),
            ("escalation-timer-deadlines-debate-opened", Turn::GivesWay),
            ("coordinator-inbox", Turn::Apart),
        ] {
            assert_eq!(turn(name), expected, "{name}");
        }
    }
}
