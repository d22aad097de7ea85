//! What was used last, bounded in bytes.

use std::hash::Hash;

use lru::LruCache;

/// Keeps values of up to so many bytes together; of more, those that were used the longest ago go.
pub struct ByteLru<K: Hash + Eq, V> {
    entries: LruCache<K, (V, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl<K: Hash + Eq, V> ByteLru<K, V> {
    /// Keeps values of up to so many bytes; one is kept whatever its size.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            entries: LruCache::unbounded(),
            bytes: 0,
            bytes_max,
        }
    }

    /// A value, which is now the one that was used last.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// Keeps a value that counts so many bytes, in place of an earlier one under the same key.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        let before = self.entries.put(key, (value, bytes));
        self.bytes = self.bytes + bytes - before.map_or(0, |(_, bytes)| bytes);
        while self.bytes > self.bytes_max && self.entries.len() > 1 {
            let gone = self.entries.pop_lru();
            self.bytes -= gone.map_or(0, |(_, (_, bytes))| bytes);
        }
    }

    /// Has a value go before any other.
    pub fn demote(&mut self, key: &K) {
        self.entries.demote(key);
    }

    /// Lets a value go.
    pub fn pop(&mut self, key: &K) {
        let gone = self.entries.pop(key);
        self.bytes -= gone.map_or(0, |(_, bytes)| bytes);
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes that they count.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
