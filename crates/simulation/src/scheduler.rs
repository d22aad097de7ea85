//! The broker's message scheduler: deadlines it holds, with the races that the real one has.
//!
//! A deadline that is armed again while it fires may fire as it was before, and the new one is lost. A deadline that is
//! cancelled while it fires may fire all the same. One may be lost altogether, as after a restore from backup.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::faults::Faults;
use crate::random::Random;

/// A deadline that the broker holds.
#[derive(Debug, Clone)]
pub(crate) struct Armed {
    /// What to publish.
    pub(crate) body: Arc<[u8]>,
    /// Which arming this was: an earlier one's firing means nothing.
    pub(crate) generation: u64,
}

/// What the broker holds, by the subject it is published on when due.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    armed: BTreeMap<String, Armed>,
    generation: u64,
}

impl Scheduler {
    /// Holds a deadline in place of an earlier one. Answers the generation to fire, or none when the earlier one stays.
    pub(crate) fn arm(
        &mut self,
        (random, faults): (&mut Random, &Faults),
        target: &str,
        body: Arc<[u8]>,
    ) -> Option<u64> {
        if self.armed.contains_key(target) && random.chance(faults.rearm_lost) {
            return None;
        }
        self.generation += 1;
        self.armed.insert(
            target.to_owned(),
            Armed {
                body,
                generation: self.generation,
            },
        );
        Some(self.generation)
    }

    /// Holds a deadline no longer, or fires it nevertheless.
    pub(crate) fn cancel(&mut self, (random, faults): (&mut Random, &Faults), target: &str) {
        if !random.chance(faults.fire_after_cancel) {
            self.armed.remove(target);
        }
    }

    /// What is to be published now, if the arming still counts and is not lost.
    pub(crate) fn fire(
        &mut self,
        (random, faults): (&mut Random, &Faults),
        target: &str,
        generation: u64,
    ) -> Option<Armed> {
        if self
            .armed
            .get(target)
            .is_none_or(|armed| armed.generation != generation)
        {
            return None;
        }
        let armed = self.armed.remove(target);
        if random.chance(faults.fire_missed) {
            None
        } else {
            armed
        }
    }

    /// True when it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }
}
