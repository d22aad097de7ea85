//! The trait of all state machines, and the one way in which a decision becomes a stored event.

use concord_events::{AggregateEvent, Deadline, Origin, StoredEvent};
use concord_wire::payload::Snapshot;
use concord_wire::{AgentId, CaseId, Fault, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::effect::Effect;

mod carry;
mod versioned;

pub use carry::{CARRY_EVERY, Carry};
pub use versioned::Versioned;

/// The circumstances of a decision, besides state and input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Context {
    /// The present, as the service sees it.
    pub now: Timestamp,
    /// The `message_id` or `event_id` of the input.
    pub cause: MessageId,
    /// Whether `cause` is a message or an event.
    pub origin: Origin,
    /// The sender of the message; none for an event, and for what is asked by request and reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<AgentId>,
}

impl Context {
    /// For an input that is a message.
    pub fn of_message(now: Timestamp, message_id: MessageId) -> Self {
        Self {
            now,
            cause: message_id,
            origin: Origin::Message,
            sender: None,
        }
    }

    /// The same of a message of this sender.
    #[must_use]
    pub fn of_sender(self, sender: AgentId) -> Self {
        Self {
            sender: Some(sender),
            ..self
        }
    }

    /// For an input that is an event of another aggregate.
    pub fn of_event(now: Timestamp, event_id: MessageId) -> Self {
        Self {
            now,
            cause: event_id,
            origin: Origin::Event,
            sender: None,
        }
    }

    /// The cause that an event names which follows from the input: its id, or a derived one where another sender's message has that id.
    /// The ids of answers can be foreseen, and nobody is to keep another from being heard by being the first to use one.
    pub fn cause_in<M: Machine>(&self, state: &M::State) -> MessageId {
        match &self.sender {
            Some(sender) if M::is_taken(state, &self.cause, sender) => {
                MessageId::of_sender(&self.cause, sender)
            }
            _ => self.cause.clone(),
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

/// What an aggregate counts at most in memory that forgets most of its events, and keeps about so many bytes of them. Small ones are
/// not told apart.
pub(crate) fn forgetting(bytes: usize) -> usize {
    bytes.max(64 << 10)
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

    /// Whether a message of another than `sender` has led to an event under this id.
    fn is_taken(_state: &Self::State, _id: &MessageId, _sender: &AgentId) -> bool {
        false
    }

    /// About how many bytes of messages follow from an input that is granted, beyond its own: what its sender causes.
    fn fan_out_bytes(_input: &Self::Input) -> usize {
        0
    }

    /// Whether every such aggregate must end some day.
    const MUST_END: bool = false;
    /// How events carry the state, so that nobody reads those before: of aggregates that live as long as the installation, and have
    /// events as long as they live. None where there are few events.
    const CARRY: Option<Carry<Self::State>> = None;
    /// Whether the event that begins such an aggregate may also come after others.
    const MAY_BEGIN_LATER: bool = false;

    /// How many bytes the aggregate counts at most in a process's memory, whatever its events: about what this state keeps of them
    /// ([`forgetting`]). By default all events count: whoever says nothing is let go too soon, and never fills the memory unseen.
    fn state_bytes_max(_state: &Self::State) -> usize {
        usize::MAX
    }

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

#[cfg(test)]
mod tests;
