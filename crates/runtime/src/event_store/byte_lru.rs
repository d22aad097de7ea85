//! What was used last, bounded in bytes.

use std::hash::Hash;

use lru::LruCache;

/// Keeps values of up to so many bytes together; of more, those that were used the longest ago go. Those that were demoted go before
/// the others, the longest demoted first.
pub struct ByteLru<K: Hash + Eq, V> {
    entries: LruCache<K, (V, usize)>,
    demoted: LruCache<K, (V, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl<K: Hash + Eq, V> ByteLru<K, V> {
    /// Keeps values of up to so many bytes; one is kept whatever its size.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            entries: LruCache::unbounded(),
            demoted: LruCache::unbounded(),
            bytes: 0,
            bytes_max,
        }
    }

    /// A value, which is now the one that was used last.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let found = self.entries.get(key).or_else(|| self.demoted.get(key));
        found.map(|(value, _)| value)
    }

    /// Keeps a value that counts so many bytes, in place of an earlier one under the same key.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        self.pop(&key);
        self.entries.put(key, (value, bytes));
        self.bytes += bytes;
        self.make_room();
    }

    /// Has a value count so many bytes from now on, if it is kept; others go where it needs their room. When it was used last does not
    /// change.
    pub fn weigh(&mut self, key: &K, bytes: usize) {
        let entry = self.entries.peek_mut(key);
        let Some((_, counted)) = entry.or_else(|| self.demoted.peek_mut(key)) else {
            return;
        };
        self.bytes = self.bytes - *counted + bytes;
        *counted = bytes;
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.bytes > self.bytes_max && self.len() > 1 {
            let gone = self.demoted.pop_lru().or_else(|| self.entries.pop_lru());
            self.bytes -= gone.map_or(0, |(_, (_, bytes))| bytes);
        }
    }

    /// Has a value go before those that were not demoted.
    pub fn demote(&mut self, key: &K) {
        if let Some((key, entry)) = self.entries.pop_entry(key) {
            self.demoted.put(key, entry);
        }
    }

    /// Lets a value go.
    pub fn pop(&mut self, key: &K) {
        let gone = self.entries.pop(key).or_else(|| self.demoted.pop(key));
        self.bytes -= gone.map_or(0, |(_, bytes)| bytes);
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.entries.len() + self.demoted.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that they count.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
