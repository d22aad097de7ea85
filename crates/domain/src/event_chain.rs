//! Finding the facts of an aggregate from its last one.
//!
//! Each fact names the last of its predecessors, at most [`EARLIER_MAX`](concord_events::EARLIER_MAX), and the
//! oldest fact that it names does the same. So the facts of an aggregate hang together however many there are, and no
//! fact grows with the age of its aggregate. Of a short aggregate the last fact names all others.

use concord_events::{AggregateEvent, StoredEvent};

/// Adds the sequence of a fact to those that the next fact names, of which there are at most `most`.
pub fn remember(earlier: &mut Vec<u64>, sequence: u64, most: usize) {
    earlier.push(sequence);
    let surplus = earlier.len().saturating_sub(most);
    earlier.drain(..surplus);
}

/// The facts of an aggregate, found so far from its last one.
///
/// Whoever reads them fetches what is [`Self::missing`] and hands it to [`Self::found`], until nothing is missing.
#[derive(Debug)]
pub struct Chain<E> {
    /// Only facts after this sequence are wanted.
    after: u64,
    /// The newest first.
    records: Vec<StoredEvent<E>>,
}

impl<E: AggregateEvent> Chain<E> {
    /// Begins at the last fact; facts up to the sequence `after` are known already, 0 when none are.
    pub fn new(last: StoredEvent<E>, after: u64) -> Self {
        Self {
            after,
            records: vec![last],
        }
    }

    /// The sequences of facts to fetch next, oldest first; empty when all are found.
    pub fn missing(&self) -> Vec<u64> {
        let Some(oldest) = self.records.last() else {
            return Vec::new();
        };
        // A fact that names itself or a later one cannot be stored; were it, this would still come to an end.
        let is_wanted = |sequence: &u64| *sequence > self.after && *sequence < oldest.sequence;
        oldest
            .meta
            .earlier
            .iter()
            .copied()
            .filter(is_wanted)
            .collect()
    }

    /// Takes the facts that were missing, oldest first.
    pub fn found(&mut self, records: Vec<StoredEvent<E>>) {
        self.records.extend(records.into_iter().rev());
    }

    /// What was found, oldest first.
    pub fn into_records(mut self) -> Vec<StoredEvent<E>> {
        self.records.reverse();
        self.records
    }
}

#[cfg(test)]
mod tests;
