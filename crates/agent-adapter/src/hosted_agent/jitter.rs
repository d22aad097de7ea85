//! Random pauses that spread callers in time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// A random time of up to `most` ("full jitter": callers that failed together do not come again together).
pub(crate) fn jitter(most: Duration) -> Duration {
    // The only randomness that the standard library gives; it is good enough to spread callers.
    let random = RandomState::new().build_hasher().finish();
    let part = u32::try_from(random % 1_000).unwrap_or(0);
    most * part / 1_000
}
