//! How many replicas of a service are needed.

use std::time::{Duration, Instant};

/// A further replica is needed when those that work are as busy as this on average, in percent.
const BUSY: u32 = 60;
/// One less is needed when the others would be less busy than this without it.
const CALM: u32 = 40;
/// And has been for so long.
const CALM_FOR: Duration = Duration::from_secs(10);

/// How many replicas are needed, by how busy they are.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// Beside the first.
    more: u32,
    calm_since: Option<Instant>,
}

impl Needed {
    /// How many are needed.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.more)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
    }

    /// Looks at how busy all replicas are, added up, in percent of one; there are so many beside this one.
    pub(super) fn look(&mut self, busy: u32, others: usize, now: Instant) {
        let more = busy.saturating_sub(1) / BUSY;
        let is_calm = self.more > 0 && busy < CALM * self.more;
        if more >= self.more {
            self.more = more.min(u32::try_from(others).unwrap_or(u32::MAX));
            self.calm_since = None;
        } else if !is_calm {
            self.calm_since = None;
        } else if now.duration_since(*self.calm_since.get_or_insert(now)) >= CALM_FOR {
            self.more -= 1;
            self.calm_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_are_needed_at_once_and_fewer_when_it_has_been_calm_for_a_while() {
        let mut needed = Needed::default();
        let start = Instant::now();
        // Seconds, how busy all are, how many are needed of four.
        for (second, busy, expected) in [
            (0, 0, 1),
            (1, 60, 1),
            (2, 61, 2),
            (3, 150, 3),
            (4, 1_000, 4),
            (5, 130, 4),
            (6, 100, 4),
            (15, 130, 4),
            (16, 100, 4),
            (25, 100, 4),
            (26, 100, 3),
            (27, 85, 3),
            (28, 10, 3),
            (38, 10, 2),
            (39, 10, 2),
            (49, 10, 1),
            (99, 10, 1),
        ] {
            needed.look(busy, 3, start + Duration::from_secs(second));
            assert_eq!(needed.count(), expected, "in second {second}");
        }
    }
}
