//! A map of bounded size that forgets its oldest entries.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The last `max` entries, each under a key. A new entry displaces the oldest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    /// An empty map that keeps at most `max` entries.
    pub fn new(max: usize) -> Self {
        Self {
            values: BTreeMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Adds an entry. An entry that is already there under the key keeps its value and its age.
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
        debug_assert!(
            self.values.len() == self.order.len() && self.order.len() <= self.max,
            "every entry has its place, and their number is bounded"
        );
    }

    /// The value under a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    /// Whether there is an entry under a key.
    pub fn contains(&self, key: &K) -> bool {
        self.values.contains_key(key)
    }

    /// The keys of all entries, the oldest first.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.order.iter()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// How the map is written: its entries, the oldest first.
#[derive(Serialize, Deserialize)]
struct Written<K, V> {
    max: usize,
    entries: Vec<(K, V)>,
}

impl<K: Ord + Serialize, V: Serialize> Serialize for Recent<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.order.iter();
        let entries = entries.filter_map(|key| self.values.get_key_value(key));
        let written = Written {
            max: self.max,
            entries: entries.collect(),
        };
        written.serialize(serializer)
    }
}

impl<'de, K: Ord + Clone + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de>
    for Recent<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { max, entries } = Written::deserialize(deserializer)?;
        let mut recent = Self::new(max);
        for (key, value) in entries {
            recent.insert(key, value);
        }
        Ok(recent)
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
        let written = serde_json::to_string(&recent).unwrap();
        assert_eq!(
            serde_json::from_str::<Recent<&str, u8>>(&written).unwrap(),
            recent
        );
    }
}
