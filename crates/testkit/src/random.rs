//! Reproducible randomness: the same seed gives the same plan.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeded by `CONCORD_SEED`, or by the clock where it is not set; the seed is printed.
    pub fn seeded() -> Self {
        let clock = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::from(since.subsec_nanos()))
        };
        let given = std::env::var("CONCORD_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(clock);
        println!("seed {seed}; run it again with CONCORD_SEED={seed}");
        Self(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of them; panics when there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.between(0, times) == 0
    }

    /// A place in a list of this length.
    pub fn below(&mut self, length: usize) -> usize {
        usize::try_from(self.between(0, length as u64)).unwrap_or(0)
    }

    /// From `low` up to, and without, `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }
}
