//! Which messages this process has handled, also beyond one that waits: what the broker says of a consumer ends there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// How many messages of a consumer are remembered. Those that are forgotten count as not handled until the broker says so.
const HANDLED_MAX: usize = 65_536;

/// The messages of some consumers that were handled. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Handled(Arc<Mutex<BTreeMap<String, BTreeSet<u64>>>>);

impl Handled {
    fn of<T>(&self, consumer: &str, look: impl FnOnce(&mut BTreeSet<u64>) -> T) -> Option<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(consumer).map(look)
    }

    /// From now on the messages of this consumer are remembered.
    pub(crate) fn watch(&self, consumer: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(consumer.to_owned()).or_default();
    }

    /// Remembers a message, where its consumer is watched.
    pub(crate) fn remember(&self, consumer: &str, sequence: u64) {
        self.of(consumer, |handled| {
            handled.insert(sequence);
            if handled.len() > HANDLED_MAX {
                handled.pop_first();
            }
        });
    }

    /// Whether a message was handled, as far as is remembered.
    pub(crate) fn contains(&self, consumer: &str, sequence: u64) -> bool {
        let found = self.of(consumer, |handled| handled.contains(&sequence));
        found.unwrap_or(false)
    }

    /// Forgets what the broker knows by itself: all up to this sequence.
    pub(crate) fn forget_through(&self, consumer: &str, sequence: u64) {
        self.of(consumer, |handled| {
            *handled = handled.split_off(&sequence.saturating_add(1));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_watched_consumer_has_brought_is_remembered_until_the_broker_knows_it() {
        let handled = Handled::default();
        handled.remember("inbox", 3);
        assert!(!handled.contains("inbox", 3), "nobody watches it");
        handled.watch("inbox");
        for sequence in [3, 5, 7] {
            handled.remember("inbox", sequence);
        }
        handled.watch("inbox");
        handled.forget_through("inbox", 5);
        let known = [3, 5, 7].map(|sequence| handled.contains("inbox", sequence));
        assert_eq!(known, [false, false, true]);
        (8..=HANDLED_MAX as u64 + 7).for_each(|sequence| handled.remember("inbox", sequence));
        assert!(!handled.contains("inbox", 7), "the memory is bounded");
        assert!(handled.contains("inbox", 8));
    }
}
