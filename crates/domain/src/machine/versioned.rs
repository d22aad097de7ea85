//! A state with the sequences of the events that it was made from, and the one way in which a decision becomes a stored event.

use std::sync::Arc;

use concord_events::{AggregateEvent, CarriedState, EARLIER_MAX, EventMeta, StoredEvent, event_id};
use concord_wire::Token;

use crate::event_chain;
use crate::machine::{Context, Machine};

/// A state together with the stream sequences of the last events it was made from.
#[derive(Debug)]
pub struct Versioned<M: Machine> {
    /// The state. Shared by those who have read it, so that to read a large one costs no copy; it is copied when the next event is
    /// applied while somebody still looks at it.
    pub state: Arc<M::State>,
    /// Sequences of the last events applied, oldest first, at most [`EARLIER_MAX`].
    pub sequences: Vec<u64>,
    /// The last event that carries the state before it; 0 where none was applied.
    carrying: u64,
    /// How many events were applied from that one on.
    since: usize,
}

// Derived, these would ask the machine itself to be cloneable; only its state is.
impl<M: Machine> Clone for Versioned<M> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            sequences: self.sequences.clone(),
            carrying: self.carrying,
            since: self.since,
        }
    }
}

impl<M: Machine> Default for Versioned<M> {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            sequences: Vec::new(),
            carrying: 0,
            since: 0,
        }
    }
}

impl<M: Machine> Versioned<M> {
    /// Sequence of the last event; 0 before the first. The optimistic lock expects it.
    pub fn sequence(&self) -> u64 {
        self.sequences.last().copied().unwrap_or(0)
    }

    /// The state alone, for whoever goes on with it.
    pub fn into_state(self) -> M::State {
        Arc::unwrap_or_clone(self.state)
    }

    /// Applies a stored event. One that was applied before is left out, so a reload may overlap.
    pub fn apply(&mut self, record: StoredEvent<M::Event>) {
        if record.sequence > self.sequence() {
            event_chain::remember(&mut self.sequences, record.sequence, EARLIER_MAX);
            debug_assert!(
                self.sequences.is_sorted(),
                "sequences grow: {:?}",
                self.sequences
            );
            if record.meta.state.is_some() {
                (self.carrying, self.since) = (record.sequence, 0);
            }
            self.since += 1;
            M::apply(Arc::make_mut(&mut self.state), record);
        }
    }

    /// Applies the next event as it was loaded; where some are left out before it, it carries the state to begin with. False when
    /// that cannot be read: then nothing is applied, and all events are to be loaded.
    #[must_use]
    pub fn catch_up(&mut self, record: StoredEvent<M::Event>) -> bool {
        let follows = record.meta.earlier.last().copied().unwrap_or(0);
        if follows > self.sequence() {
            let Some(state) = record.meta.state.as_ref().and_then(Self::read) else {
                return false;
            };
            *self = Self {
                state: Arc::new(state),
                ..Self::default()
            };
        }
        self.apply(record);
        true
    }

    /// The last event before this one, where it is an earlier one than the last that is `known`: this state rests on events that are not
    /// stored any more. Only of the first event after those that are known; 0 where there is none before it.
    pub fn replaced_by(&self, record: &StoredEvent<M::Event>, known: u64) -> Option<u64> {
        let is_next = self.sequence() == known && record.sequence > known;
        let follows = record.meta.earlier.last().copied().unwrap_or(0);
        (is_next && follows < known).then_some(follows)
    }

    fn read(carried: &CarriedState) -> Option<M::State> {
        M::CARRY.as_ref()?.read(carried)
    }

    /// The predecessors that the next event names: those from the last on that carries the state.
    pub fn named(&self) -> &[u64] {
        let first = self.sequences.partition_point(|one| *one < self.carrying);
        self.sequences.get(first..).unwrap_or_default()
    }

    /// Lets an event carry the state before it, where there are `every` events since the last that did, and it does not take more room
    /// than they.
    pub fn carry(&self, record: &mut StoredEvent<M::Event>, every: usize) {
        if let Some(carry) = &M::CARRY
            && self.since >= every
            && self.since.is_multiple_of(every)
        {
            record.meta.state = carry.write(&self.state, self.since);
        }
    }

    /// Makes the stored form of `event`, with the deadlines that it opens and closes. Its sequence
    /// is 0 until it is stored.
    pub fn record(&self, id: &Token, context: &Context, event: M::Event) -> StoredEvent<M::Event> {
        debug_assert!(
            !M::MUST_END || !self.sequences.is_empty() || M::begins(&event),
            "{} {id} cannot begin with {event:?}",
            M::Event::AGGREGATE
        );
        debug_assert_eq!(M::misplaced(&self.state, &event), None, "{event:?} of {id}");
        let before = M::deadlines(&self.state);
        let cause = context.cause_in::<M>(&self.state);
        let meta = EventMeta {
            event_id: event_id(M::Event::AGGREGATE, id, context.origin, &cause),
            id: id.clone(),
            at: context.now,
            cause,
            deadlines: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            earlier: self.named().to_vec(),
            memory_snapshot: M::memory_snapshot(&self.state),
            state: None,
        };
        let mut record = StoredEvent {
            meta,
            sequence: 0,
            event,
        };
        if !record.event.moves_deadlines() {
            record.meta.deadlines = before;
            return record;
        }
        let after = M::deadlines_after(&self.state, &record);
        record.meta.opened = after
            .iter()
            .filter(|d| !before.contains(d))
            .map(|d| d.name.clone())
            .collect();
        record.meta.closed = before
            .iter()
            .filter(|b| !after.iter().any(|a| a.name == b.name))
            .map(|d| d.name.clone())
            .collect();
        record.meta.deadlines = after;
        record
    }
}

#[cfg(test)]
mod tests;
