//! The heads of a log, beside one that somebody has kept.

use std::collections::BTreeMap;

use concord_events::topology::StreamKind;
use concord_events::{Head, StreamInterval};

use super::{Difference, DifferenceKind, digest_of};

/// A head as the stream of events holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    /// Its sequence among the events.
    pub sequence: u64,
    /// The head.
    pub head: Head,
}

/// The heads that are to be believed: the kept one, those before it that it names, and those that
/// follow it.
#[derive(Debug)]
pub struct History {
    heads: BTreeMap<u64, Head>,
    kept: u64,
    differences: Vec<Difference>,
}

impl History {
    /// Looks from the kept head back and forth over the heads of the log.
    pub fn new(kept: &Head, stored: &[StoredHead]) -> Self {
        let mut history = Self {
            heads: BTreeMap::new(),
            kept: kept.number,
            differences: Vec::new(),
        };
        if digest_of(kept) != kept.digest {
            history.differ(
                DifferenceKind::KeptHead,
                "The kept head does not fit its own digest: somebody has changed the file.",
            );
            return history;
        }
        history.heads.insert(kept.number, kept.clone());
        // What a head says of its digest counts for nothing.
        let by_digest: BTreeMap<String, &StoredHead> = stored
            .iter()
            .map(|stored| (digest_of(&stored.head), stored))
            .collect();
        if stored.is_empty() {
            history.differ(
                DifferenceKind::NoHeads,
                "There is no head in this log: another history stands in its place, the heads were removed, or it \
                 was written by a version that kept none.",
            );
        } else if !by_digest.contains_key(&kept.digest) {
            history.replaced(kept, stored);
        }
        history.go_back(kept, &by_digest);
        history.go_on(kept, stored);
        history
    }

    fn differ(&mut self, kind: DifferenceKind, what: impl Into<String>) {
        self.differences.push(Difference::of_heads(kind, what));
    }

    fn replaced(&mut self, kept: &Head, stored: &[StoredHead]) {
        let number = kept.number;
        let last = stored.iter().map(|stored| stored.head.number).max();
        let what = match stored.iter().find(|stored| stored.head.number == number) {
            Some(other) => format!(
                "Head {number} of this log, at {}, is not the kept one: the history is another, or was written anew.",
                other.sequence
            ),
            None => format!(
                "Head {number} is not in this log, whose last head is {}: its end was removed, or the history is \
                 another.",
                last.unwrap_or(0)
            ),
        };
        self.differ(DifferenceKind::OtherHistory, what);
    }

    /// Finds the heads before the kept one, each by the digest that the one after it names.
    fn go_back(&mut self, kept: &Head, by_digest: &BTreeMap<String, &StoredHead>) {
        let mut head = kept;
        while let Some(previous) = &head.previous {
            let Some(stored) = by_digest.get(previous) else {
                let number = head.number - 1;
                self.differ(
                    DifferenceKind::BrokenChain,
                    format!(
                        "Head {number}, which head {} follows, is not in this log; what the heads up to {number} \
                         cover cannot be checked.",
                        head.number
                    ),
                );
                return;
            };
            head = &stored.head;
            self.heads.insert(head.number, head.clone());
        }
    }

    /// Takes the heads after the kept one, as long as each follows the one before.
    fn go_on(&mut self, kept: &Head, stored: &[StoredHead]) {
        let mut last = kept;
        for StoredHead { sequence, head } in stored
            .iter()
            .filter(|stored| stored.head.number > kept.number)
        {
            let follows = head.number == last.number + 1
                && head.previous.as_ref() == Some(&last.digest)
                && digest_of(head) == head.digest;
            if !follows {
                let what = format!(
                    "Head {} at {sequence} does not follow head {}.",
                    head.number, last.number
                );
                return self.differ(DifferenceKind::BrokenChain, what);
            }
            self.heads.insert(head.number, head.clone());
            last = head;
        }
    }

    /// The heads that are to be believed, the first first.
    pub fn heads(&self) -> impl Iterator<Item = &Head> {
        self.heads.values()
    }

    /// The number of the kept head.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// What differs between the heads.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// The intervals of a stream that are to be believed, in order. Each says the shortest time for
    /// which the stream has kept messages since, up to the kept head: a shorter one set later counts
    /// only once a head that says so is kept.
    pub fn intervals(&self, stream: StreamKind) -> Vec<StreamInterval> {
        let mut shortest = None;
        let mut intervals = Vec::new();
        for head in self.heads.values().rev() {
            let of_stream = head.streams.iter().filter(|one| one.stream == stream);
            for mut interval in of_stream.cloned() {
                if head.number <= self.kept {
                    shortest = shortest.into_iter().chain(interval.kept_ms).min();
                    interval.kept_ms = shortest;
                }
                if interval.count > 0 {
                    intervals.push(interval);
                }
            }
        }
        intervals.reverse();
        intervals
    }
}
