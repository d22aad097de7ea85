//! Chance, from a seed and from nothing else.

/// `SplitMix64` (Steele, Lea, Flood 2014): small, quick, and the same on every machine for ever. A generator from a
/// library could change its numbers with its version, and a seed in a bug report would then mean something else.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed ^ 0x5851_f42d_4c95_7f2d);
        // Neighbouring seeds begin with unlike numbers.
        random.next();
        random
    }

    /// Another generator, which follows from this one and leaves it as it is.
    pub(crate) fn fork(&self, salt: u64) -> Self {
        Self::new(self.0 ^ salt)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high.saturating_sub(low) + 1)
    }

    /// A place in a list of `length` things.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % (length.max(1) as u64)).unwrap_or(0)
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        // Drawn even when the answer is certain, so that a fault can be switched off without moving all others.
        self.fraction() < probability
    }

    /// A number from 0 up to and without 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of them; none of none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let place = self.place(from.len());
        from.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut random = Random::new(1);
        assert_eq!([random.next(), random.next()], [FIRST, SECOND]);
    }

    const FIRST: u64 = 18200408164192772652;
    const SECOND: u64 = 16404582681253576005;

    #[test]
    fn chances_are_about_as_stated() {
        let mut random = Random::new(7);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!(random.pick::<u8>(&[]), None);
    }
}
