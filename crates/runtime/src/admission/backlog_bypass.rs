//! A way past a flood: while more of one sender's messages wait than may be worked on, those of all others are read by
//! their senders' subjects and handled at once. The consumer that they wait in comes to them later, and passes them by.
//!
//! A consumer is read in order and cannot leave out a sender, but the broker can be asked for what certain others sent.
//! All replicas share one such consumer, which lives as long as the flood. What is read past the flood by one replica and
//! in order by another is a repetition, which changes nothing. See `docs/adr/0032`.

pub(super) mod reader;
mod unknown_senders;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// So many messages have to wait before anything is read past them: fewer are read in a moment.
const WAITING_MIN: u64 = 1_000;
/// How many messages are remembered that were handled past a flood and not yet passed by. Those that are forgotten are
/// handled again, as a repetition.
const HANDLED_MAX: usize = 65_536;
/// How often some more of a flood is let through.
const TICK: Duration = Duration::from_millis(10);

/// What became of a delivery that was handled past a flood, when the consumer came to it in order, in the metrics.
pub(super) const PASSED: &str = "passed";

/// What the two paths on which one consumer is read know of each other.
#[derive(Debug, Default)]
pub(super) struct BacklogBypass {
    /// The sequence that was delivered in order last.
    at: AtomicU64,
    /// How many messages wait behind that.
    waiting: AtomicU64,
    is_needed: AtomicBool,
    /// Messages of flooding senders that were read since the last tick.
    let_through: AtomicU32,
    needed: Notify,
    handled: Mutex<BTreeSet<u64>>,
}

impl BacklogBypass {
    /// Takes into account that a message was delivered in order, with so many behind it.
    pub(super) fn came_to(&self, sequence: u64, waiting: u64) {
        self.at.store(sequence, Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    /// Takes into account that the sender of the message that came last floods.
    pub(super) fn flooded(&self) {
        self.let_through.fetch_add(1, Ordering::Relaxed);
        if self.waiting.load(Ordering::Relaxed) >= WAITING_MIN
            && !self.is_needed.swap(true, Ordering::Relaxed)
        {
            self.needed.notify_one();
        }
    }

    /// Lets no more than `rate` messages a second of flooding senders through, as long as the others are read past them:
    /// nobody waits for these then, and whatever the flood is given is taken from the others. Returns whether it waited.
    pub(super) async fn hold_back(&self, rate: u32) -> bool {
        let ticks = u32::try_from(Duration::from_secs(1).as_millis() / TICK.as_millis())
            .unwrap_or(u32::MAX);
        let holds_back = self.is_needed.load(Ordering::Relaxed)
            && self.let_through.load(Ordering::Relaxed) >= (rate / ticks).max(1);
        if holds_back {
            tokio::time::sleep(TICK).await;
            self.let_through.store(0, Ordering::Relaxed);
        }
        holds_back
    }

    /// The sequence from which on the others are read past the backlog.
    fn position(&self) -> u64 {
        self.at.load(Ordering::Relaxed).max(1)
    }

    fn handled<T>(&self, change: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
        change(&mut self.handled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers a message that was handled past the backlog.
    pub(super) fn remember(&self, sequence: u64) {
        self.handled(|handled| {
            handled.insert(sequence);
            if handled.len() > HANDLED_MAX {
                handled.pop_first();
            }
            debug_assert!(handled.len() <= HANDLED_MAX, "the memory is bounded");
        });
    }

    /// Whether a message was handled past the backlog, when it is delivered there a second time.
    pub(super) fn is_handled(&self, sequence: u64) -> bool {
        self.handled(|handled| handled.contains(&sequence))
    }

    /// Whether a message was handled past the backlog; asked once, when the consumer comes to it in order.
    pub(super) fn take_handled(&self, sequence: u64) -> bool {
        self.handled(|handled| handled.remove(&sequence))
    }
}

/// Whether so few messages wait in a consumer that nothing need be read past them.
fn is_over(waiting: i64) -> bool {
    waiting < WAITING_MIN.cast_signed() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_when_much_waits_and_until_little_does() {
        let bypass = BacklogBypass::default();
        bypass.came_to(1, WAITING_MIN - 1);
        bypass.flooded();
        assert!(
            !bypass.is_needed.load(Ordering::Relaxed),
            "what waits is read in a moment"
        );
        bypass.came_to(2, WAITING_MIN);
        assert!(
            !bypass.is_needed.load(Ordering::Relaxed),
            "many senders are no flood"
        );
        bypass.flooded();
        assert!(bypass.is_needed.load(Ordering::Relaxed));
        for (waiting, over) in [
            (WAITING_MIN - 1, false),
            (WAITING_MIN / 2, false),
            (WAITING_MIN / 2 - 1, true),
        ] {
            assert_eq!(is_over(waiting.try_into().unwrap()), over, "{waiting}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_let_through_at_its_rate_while_others_are_read_past_it() {
        let bypass = BacklogBypass::default();
        let began = tokio::time::Instant::now();
        let let_through = async |messages: u32| {
            for number in 0..messages {
                bypass.came_to(u64::from(number), WAITING_MIN);
                bypass.flooded();
                bypass.hold_back(2_000).await;
            }
        };
        let_through(1).await;
        bypass.is_needed.store(false, Ordering::Relaxed);
        bypass.hold_back(2_000).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing is read past it");
        let_through(4_000).await;
        let took = began.elapsed();
        assert!(
            (Duration::from_millis(1_980)..=Duration::from_millis(2_020)).contains(&took),
            "{took:?}"
        );
        // Others are not counted.
        for _ in 0..4_000 {
            bypass.hold_back(2_000).await;
        }
        assert!(began.elapsed() - took <= TICK);
    }

    #[test]
    fn what_was_handled_is_passed_by_once_and_the_memory_of_it_is_bounded() {
        let bypass = BacklogBypass::default();
        bypass.remember(7);
        assert!(!bypass.take_handled(6));
        assert!(bypass.take_handled(7));
        assert!(!bypass.take_handled(7), "it comes by once");
        (1..=HANDLED_MAX as u64 + 1).for_each(|sequence| bypass.remember(sequence));
        assert!(!bypass.take_handled(1));
        assert!(bypass.take_handled(2));
        assert_eq!(bypass.handled(|handled| handled.len()), HANDLED_MAX - 1);
    }
}
