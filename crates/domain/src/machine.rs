//! What every state machine is, and the one way in which a decision becomes a record.

use concord_events::{
    AggregateEvent, Deadline, EARLIER_MAX, EventMeta, Origin, StoredEvent, event_id,
};
use concord_wire::{CaseId, Fault, MessageId, Timestamp, Token};

use crate::effect::Effect;
use crate::event_chain;

/// What a decision may know besides state and input.
#[derive(Debug, Clone)]
pub struct Context {
    /// The present, as the shell sees it.
    pub now: Timestamp,
    /// `message_id` or `event_id` of the input.
    pub cause: MessageId,
    /// Which of the two.
    pub origin: Origin,
}

impl Context {
    /// For an input that was said.
    pub fn of_message(now: Timestamp, message_id: MessageId) -> Self {
        Self {
            now,
            cause: message_id,
            origin: Origin::Message,
        }
    }

    /// For an input that is a fact of another aggregate.
    pub fn of_fact(now: Timestamp, event_id: MessageId) -> Self {
        Self {
            now,
            cause: event_id,
            origin: Origin::Event,
        }
    }
}

/// What is to be done about an input: at most one event.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<E> {
    /// Store this fact.
    Append(E),
    /// Do nothing; the input is done with.
    Ignore(Ignored),
    /// Refuse the input and tell its sender.
    Reject(Fault),
}

/// Why nothing needs to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ignored {
    /// The same message was used before.
    Repetition,
    /// What the input asks for is already so.
    AlreadyDone,
    /// The deadline is not, or no longer, open.
    DeadlineNotOpen,
}

impl Ignored {
    /// A label for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repetition => "repetition",
            Self::AlreadyDone => "already_done",
            Self::DeadlineNotOpen => "deadline_not_open",
        }
    }
}

/// A state machine. `decide` is the only place where anything is chosen.
pub trait Machine: Sized + 'static {
    /// What is known of one aggregate.
    type State: Default + Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static;
    /// What can happen to it.
    type Event: AggregateEvent + std::fmt::Debug + PartialEq;
    /// What can be asked of it.
    type Input: Send + Sync;

    /// What to do about `input`.
    fn decide(state: &Self::State, context: &Context, input: &Self::Input)
    -> Decision<Self::Event>;
    /// What is known after `record`, which becomes part of the state. Chooses nothing and cannot fail.
    fn apply(state: &mut Self::State, record: StoredEvent<Self::Event>);
    /// Which deadlines are open.
    fn deadlines(state: &Self::State) -> Vec<Deadline>;
    /// Which deadlines are open after `record`. Machines that step often say so without applying the record to a copy.
    fn deadlines_after(state: &Self::State, record: &StoredEvent<Self::Event>) -> Vec<Deadline> {
        let mut after = state.clone();
        Self::apply(&mut after, record.clone());
        Self::deadlines(&after)
    }
    /// What others must be told because of `record`; depends on nothing else.
    fn effects(record: &StoredEvent<Self::Event>) -> Vec<Effect>;
    /// The case that a record with effects belongs to.
    fn case_of(record: &StoredEvent<Self::Event>) -> Option<CaseId>;
    /// True for an input that creates its aggregate: deciding then begins with the empty state instead of a read,
    /// and the lock finds out when that was wrong.
    fn creates(input: &Self::Input) -> bool;
}

/// A state together with the stream sequences of the last facts it was made from.
#[derive(Debug)]
pub struct Versioned<M: Machine> {
    /// The state.
    pub state: M::State,
    /// Sequences of the last facts applied, oldest first: as many as the next fact names.
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
    /// Sequence of the last fact; 0 before the first. This is what the optimistic lock expects.
    pub fn sequence(&self) -> u64 {
        self.sequences.last().copied().unwrap_or(0)
    }

    /// Applies a stored fact. One that was applied before is left out, so a reload may overlap.
    pub fn apply(&mut self, record: StoredEvent<M::Event>) {
        if record.sequence > self.sequence() {
            event_chain::remember(&mut self.sequences, record.sequence, EARLIER_MAX);
            M::apply(&mut self.state, record);
        }
    }

    /// The record that stores `event`. Its sequence is 0 until it is stored.
    pub fn record(&self, id: &Token, context: &Context, event: M::Event) -> StoredEvent<M::Event> {
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
