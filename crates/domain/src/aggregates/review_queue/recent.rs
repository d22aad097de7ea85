//! A memory of what came last, of bounded size.

use std::collections::{BTreeMap, VecDeque};

/// The last so many things, each under a key. The oldest goes when there is no room for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    /// Remembers nothing yet, and at most `max` things.
    pub fn new(max: usize) -> Self {
        Self {
            values: BTreeMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Remembers one more thing. What is remembered under the key already keeps its value and its age.
    pub fn insert(&mut self, key: K, value: V) {
        if self.values.contains_key(&key) {
            return;
        }
        self.order.push_back(key.clone());
        self.values.insert(key, value);
        if self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }

    /// What is remembered under a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    /// Whether anything is remembered under a key.
    pub fn contains(&self, key: &K) -> bool {
        self.values.contains_key(key)
    }

    /// How many things are remembered.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_repetition_does_not_make_young() {
        let mut recent = Recent::new(2);
        assert!(recent.is_empty());
        for (key, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            recent.insert(key, value);
        }
        assert_eq!(
            (recent.get(&"a"), recent.get(&"b"), recent.get(&"c")),
            (None, Some(&2), Some(&4))
        );
        assert_eq!((recent.len(), recent.contains(&"c")), (2, true));
    }
}
