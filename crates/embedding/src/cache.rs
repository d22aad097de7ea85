//! A cache of computed vectors, by the digest of their text.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use sha2::{Digest, Sha256};

/// The SHA-256 digest of a text. Nobody can make two texts with the same digest.
type Key = [u8; 32];

/// The cache. The entry that was used least recently is dropped first.
#[derive(Debug)]
pub(crate) struct Cache(Mutex<LruCache<Key, Arc<[f32]>>>);

impl Cache {
    pub(crate) fn new(size: NonZeroUsize) -> Self {
        Self(Mutex::new(LruCache::new(size)))
    }

    pub(crate) fn key(text: &str) -> Key {
        Sha256::digest(text.as_bytes()).into()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<[f32]>> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn put(&self, key: Key, vector: Arc<[f32]>) {
        self.lock().put(key, vector);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Key, Arc<[f32]>>> {
        // Nothing is half done in a cache.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_vector_is_forgotten() {
        let cache = Cache::new(NonZeroUsize::new(2).unwrap());
        let [a, b, c] = ["a", "b", "c"].map(Cache::key);
        cache.put(a, Arc::new([1.0]));
        cache.put(b, Arc::new([2.0]));
        assert_eq!(cache.get(&a).as_deref(), Some(&[1.0][..]));
        cache.put(c, Arc::new([3.0]));
        assert_eq!(cache.get(&b), None);
        assert_eq!(cache.get(&a).as_deref(), Some(&[1.0][..]));
        assert_eq!(cache.get(&c).as_deref(), Some(&[3.0][..]));
    }
}
