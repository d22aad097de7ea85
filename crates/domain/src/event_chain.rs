//! Finds the events of an aggregate from its last one.
//!
//! Each event names the last of its predecessors, at most
//! [`EARLIER_MAX`](concord_events::EARLIER_MAX), and the oldest event that it names does the same.
//! So all events of an aggregate can be found however many there are, and no event grows with the
//! age of its aggregate. The last event of a short aggregate names all others. Whoever wants the
//! state alone follows the chain to the last event that carries it.

use concord_events::{AggregateEvent, StoredEvent};

/// Adds the sequence of an event to those that the next event names, of which there are at most
/// `most`.
pub fn remember(earlier: &mut Vec<u64>, sequence: u64, most: usize) {
    earlier.push(sequence);
    debug_assert!(
        earlier.is_sorted(),
        "predecessors are named in the order of the stream: {earlier:?}"
    );
    let surplus = earlier.len().saturating_sub(most);
    earlier.drain(..surplus);
}

/// Whether the events before this one need not be read by whoever takes a state in this form.
fn is_enough<E>(record: &StoredEvent<E>, form: Option<u32>) -> bool {
    let carried = record.meta.state.as_ref().map(|carried| carried.form);
    carried.is_some() && carried == form
}

/// The events from the last one on that carries the state in this form; all where none does. Oldest
/// first.
pub fn from_state<E>(mut records: Vec<StoredEvent<E>>, form: Option<u32>) -> Vec<StoredEvent<E>> {
    match records.iter().rposition(|record| is_enough(record, form)) {
        Some(first) => records.split_off(first),
        None => records,
    }
}

/// The events of an aggregate, found so far from its last one.
///
/// The reader fetches the events of [`Self::missing`] and hands them to [`Self::found`], until
/// nothing is missing.
#[derive(Debug)]
pub struct Chain<E> {
    /// Only events after this sequence are wanted.
    after: u64,
    /// Events before one that carries the state in this form are not wanted.
    form: Option<u32>,
    /// The events found so far, the newest first.
    records: Vec<StoredEvent<E>>,
}

impl<E: AggregateEvent> Chain<E> {
    /// Begins at the last event. Events up to the sequence `after` are known already; 0 when none
    /// are. With a `form`, what comes before a state in that form is not wanted.
    pub fn new(last: StoredEvent<E>, after: u64, form: Option<u32>) -> Self {
        Self {
            after,
            form,
            records: vec![last],
        }
    }

    /// The sequences of the events to fetch next, oldest first; empty when all are found.
    pub fn missing(&self) -> Vec<u64> {
        let Some(oldest) = self.records.last() else {
            return Vec::new();
        };
        if self
            .records
            .iter()
            .any(|record| is_enough(record, self.form))
        {
            return Vec::new();
        }
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

    /// All events that are wanted, oldest first.
    pub fn into_records(mut self) -> Vec<StoredEvent<E>> {
        self.records.reverse();
        from_state(self.records, self.form)
    }
}

#[cfg(test)]
mod tests;
