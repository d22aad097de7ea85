//! Finds the events of an aggregate from its last one.
//!
//! Each event names the last of its predecessors, at most
//! [`EARLIER_MAX`](concord_events::EARLIER_MAX), and the oldest event that it names does the same.
//! So all events of an aggregate can be found however many there are, and no event grows with the
//! age of its aggregate. The last event of a short aggregate names all others.

use concord_events::{AggregateEvent, StoredEvent};

/// Adds the sequence of an event to those that the next event names, of which there are at most
/// `most`.
pub fn remember(earlier: &mut Vec<u64>, sequence: u64, most: usize) {
    earlier.push(sequence);
    let surplus = earlier.len().saturating_sub(most);
    earlier.drain(..surplus);
}

/// The events of an aggregate, found so far from its last one.
///
/// The reader fetches the events of [`Self::missing`] and hands them to [`Self::found`], until
/// nothing is missing.
#[derive(Debug)]
pub struct Chain<E> {
    /// Only events after this sequence are wanted.
    after: u64,
    /// The events found so far, the newest first.
    records: Vec<StoredEvent<E>>,
}

impl<E: AggregateEvent> Chain<E> {
    /// Begins at the last event. Events up to the sequence `after` are known already; 0 when none
    /// are.
    pub fn new(last: StoredEvent<E>, after: u64) -> Self {
        Self {
            after,
            records: vec![last],
        }
    }

    /// The sequences of the events to fetch next, oldest first; empty when all are found.
    pub fn missing(&self) -> Vec<u64> {
        let Some(oldest) = self.records.last() else {
            return Vec::new();
        };
        // An event that names itself or a later one cannot be stored. If it were, this would still
        // come to an end.
        let is_wanted = |sequence: &u64| *sequence > self.after && *sequence < oldest.sequence;
        oldest
            .meta
            .earlier
            .iter()
            .copied()
            .filter(is_wanted)
            .collect()
    }

    /// Takes the events that were missing, oldest first.
    pub fn found(&mut self, records: Vec<StoredEvent<E>>) {
        self.records.extend(records.into_iter().rev());
    }

    /// All events found, oldest first.
    pub fn into_records(mut self) -> Vec<StoredEvent<E>> {
        self.records.reverse();
        self.records
    }
}

#[cfg(test)]
mod tests;
