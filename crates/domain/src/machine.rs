//! The trait of all state machines, and the one way in which a decision becomes a stored event.

use concord_events::{
    AggregateEvent, Deadline, EARLIER_MAX, EventMeta, Origin, StoredEvent, event_id,
};
use concord_wire::payload::Snapshot;
use concord_wire::{CaseId, Fault, MessageId, Timestamp, Token};
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event_chain;

/// The circumstances of a decision, besides state and input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Context {
    /// The present, as the service sees it.
    pub now: Timestamp,
    /// The `message_id` or `event_id` of the input.
    pub cause: MessageId,
    /// Whether `cause` is a message or an event.
    pub origin: Origin,
}

impl Context {
    /// For an input that is a message.
    pub fn of_message(now: Timestamp, message_id: MessageId) -> Self {
        Self {
            now,
            cause: message_id,
            origin: Origin::Message,
        }
    }

    /// For an input that is an event of another aggregate.
    pub fn of_event(now: Timestamp, event_id: MessageId) -> Self {
        Self {
            now,
            cause: event_id,
            origin: Origin::Event,
        }
    }
}

/// What to do about an input: it leads to at most one event.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<E> {
    /// Store this event.
    Append(E),
    /// Do nothing. The input is finished.
    Ignore(Ignored),
    /// Reject the input and tell its sender why.
    Reject(Fault),
}

/// The reason why nothing needs to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ignored {
    /// The same message was recorded before.
    Repetition,
    /// The state is already as the input asks.
    AlreadyDone,
    /// The deadline is not open, or no longer.
    DeadlineNotOpen,
}

impl Ignored {
    /// The reason as a label of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repetition => "repetition",
            Self::AlreadyDone => "already_done",
            Self::DeadlineNotOpen => "deadline_not_open",
        }
    }
}

/// A state machine.
///
/// Everything is chosen in [`decide`](Self::decide): it takes a state and an input and returns at
/// most one event. The other functions follow from what is stored. The last group says in which
/// order events may follow each other: the audit checks stored events against it, and debug builds
/// check each new one. By default every order is right, and the aggregate never ends.
pub trait Machine: Sized + 'static {
    /// The state of one aggregate.
    type State: Default + Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static;
    /// Its events.
    type Event: AggregateEvent + std::fmt::Debug + PartialEq;
    /// Its inputs.
    type Input: Send + Sync;

    /// Decides what to do about `input`.
    fn decide(state: &Self::State, context: &Context, input: &Self::Input)
    -> Decision<Self::Event>;
    /// Changes the state by a stored event. Chooses nothing and cannot fail.
    fn apply(state: &mut Self::State, record: StoredEvent<Self::Event>);
    /// The deadlines that are open in this state.
    fn deadlines(_state: &Self::State) -> Vec<Deadline> {
        Vec::new()
    }
    /// The deadlines that are open after `record`. Machines with large states override this, to
    /// spare a copy of the state.
    fn deadlines_after(state: &Self::State, record: &StoredEvent<Self::Event>) -> Vec<Deadline> {
        let mut after = state.clone();
        Self::apply(&mut after, record.clone());
        Self::deadlines(&after)
    }
    /// The messages that follow from `record`. They depend on nothing else.
    fn effects(_record: &StoredEvent<Self::Event>) -> Vec<Effect> {
        Vec::new()
    }
    /// The case that an event with effects belongs to.
    fn case_of(_record: &StoredEvent<Self::Event>) -> Option<CaseId> {
        None
    }
    /// The snapshot of shared memory that the aggregate refers to in this state.
    fn memory_snapshot(_state: &Self::State) -> Option<Snapshot> {
        None
    }
    /// The snapshot that the messages refer to which follow from `record`. An event can be a snapshot itself.
    fn snapshot_of(record: &StoredEvent<Self::Event>) -> Option<Snapshot> {
        record.meta.memory_snapshot
    }
    /// True for an input that creates its aggregate: deciding then begins with the empty state
    /// instead of a read, and the lock finds out when that was wrong.
    fn creates(_input: &Self::Input) -> bool {
        false
    }

    /// About how many bytes of messages follow from an input that is granted, beyond its own: what its sender causes.
    fn fan_out_bytes(_input: &Self::Input) -> usize {
        0
    }

    /// Whether every such aggregate must end some day.
    const MUST_END: bool = false;
    /// How many bytes an aggregate without an end counts at most in a process's memory, whatever its events: about what its state
    /// keeps of them. Where it is too much, aggregates are let go that had room, and each comes back event by event.
    const STATE_BYTES_MAX: usize = 64 << 10;
    /// Whether the event that begins such an aggregate may also come after others.
    const MAY_BEGIN_LATER: bool = false;

    /// Whether the event begins such an aggregate.
    fn begins(_event: &Self::Event) -> bool {
        true
    }
    /// Whether the event ends it.
    fn ends(_event: &Self::Event) -> bool {
        false
    }
    /// Whether the event may come after the end.
    fn may_follow_end(_event: &Self::Event) -> bool {
        true
    }
    /// Whether events that follow the end may still change what was decided, so that a reader who checks them keeps the state.
    fn changes_after_end(_state: &Self::State) -> bool {
        false
    }
    /// Whether the event, after the end, begins another aggregate under the same id.
    fn begins_again(_event: &Self::Event) -> bool {
        false
    }
    /// Whether an aggregate in this state may wait for nothing but people, for as long as they
    /// wish.
    fn may_rest(_state: &Self::State) -> bool {
        false
    }
    /// What is wrong with the event, given the state before it; a sentence for a reader.
    fn misplaced(_before: &Self::State, _event: &Self::Event) -> Option<String> {
        None
    }
    /// Decides again what can be decided again, given the state after the event. Returns the
    /// differences.
    fn recount(_after: &Self::State, _record: &StoredEvent<Self::Event>) -> Vec<String> {
        Vec::new()
    }
}

/// A state together with the stream sequences of the last events it was made from.
#[derive(Debug)]
pub struct Versioned<M: Machine> {
    /// The state.
    pub state: M::State,
    /// Sequences of the last events applied, oldest first: as many as the next event names.
    pub sequences: Vec<u64>,
}

// Derived, these would ask the machine itself to be cloneable; only its state is.
impl<M: Machine> Clone for Versioned<M> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            sequences: self.sequences.clone(),
        }
    }
}

impl<M: Machine> Default for Versioned<M> {
    fn default() -> Self {
        Self {
            state: M::State::default(),
            sequences: Vec::new(),
        }
    }
}

impl<M: Machine> Versioned<M> {
    /// Sequence of the last event; 0 before the first. The optimistic lock expects it.
    pub fn sequence(&self) -> u64 {
        self.sequences.last().copied().unwrap_or(0)
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
            M::apply(&mut self.state, record);
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
        let meta = EventMeta {
            event_id: event_id(M::Event::AGGREGATE, id, context.origin, &context.cause),
            id: id.clone(),
            at: context.now,
            cause: context.cause.clone(),
            deadlines: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            earlier: self.sequences.clone(),
            memory_snapshot: M::memory_snapshot(&self.state),
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
