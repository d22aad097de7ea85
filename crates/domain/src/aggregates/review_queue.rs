//! The review queue: the experts who can rule, and the debates that wait for one. Owned by the
//! debate facilitator.
//!
//! There is one queue in an installation, under the fixed id [`id`], and every event about order
//! and capacity is an event of it. So all of them are decided under one lock, and no expert has
//! more debates than their capacity however many replicas of the facilitator run. What a debate
//! does with being assigned, overflowed or released is its own concern.
//!
//! Inputs about a debate:
//!
//! | debate   | Enqueue                 | Advance                | GiveBack      | Release  | Reassign                   |
//! |----------|-------------------------|------------------------|---------------|----------|----------------------------|
//! | unknown  | enqueued, or overflowed | -                      | ignored       | released | refused: not in the queue  |
//! | waiting  | ignored                 | assigned, if first [1] | ignored       | released | reassigned, or refused [2] |
//! | assigned | ignored                 | -                      | returned, [3] | released | reassigned, or refused [2] |
//! | finished | ignored                 | -                      | ignored       | ignored  | refused: not in the queue  |
//!
//! [1] The first debate that some expert can take; ignored when there is none. [2] Refused when the
//! expert is not registered, is excluded, has it already, or has no room. [3] When the
//! expert has it and somebody else can take it, who has not let it lie; else ignored. *Finished* are debates
//! that were released or have overflowed; the last [`FINISHED_MAX`] are remembered, and an unknown
//! debate can be released, so that an Enqueue that comes late finds it finished.
//!
//! Inputs about an expert:
//!
//! | expert     | Register                                          | Leave                              |
//! |------------|---------------------------------------------------|------------------------------------|
//! | unknown    | expert_registered, or refused: not valid, too many | refused: no such expert            |
//! | registered | expert_registered: replaced, keeps its debates     | expert_left: its debates wait again |
//!
//! Both follow from events of people. Those of one person may be heard in another order than they
//! happened: what follows from an event earlier than the last one that was heard is ignored, and an
//! expert whom the queue has not heard of yet leaves it all the same.
//!
//! **Order.** By priority. Within a priority openers take turns: the next debate is of the opener
//! who was served longest ago in this priority, and of theirs the one that has waited longest (then
//! by debate id). So a thousand debates of one opener delay another's by one assignment. A debate on
//! the critical path is assigned before all others as soon as an expert has room; no debate is taken
//! away from an expert for it.
//!
//! **Choice of the expert.** Experts with room who are not excluded. Where the debate has a domain
//! and any registered expert who is not excluded has it too, only such experts: others wait for
//! them. Among these the least loaded (debates to capacity), then the one whose last assignment is
//! longest ago, then the lower id. Those who have let the debate lie are asked when nobody else can.
//!
//! **A full queue.** When nobody who may be given a debate has room, a supporting debate overflows
//! at once, and another when `queue_max` wait already and its opener has an equal share of these
//! places (`queue_max` by the number of openers who wait): so one opener cannot fill the queue for
//! others. A setting of the installation bounds the debates of one opener that wait beside it; what
//! exceeds it overflows too, and the events say the number that was in force. While no expert is
//! registered at all everything waits: one may register in time.
//!
//! **Duties of the caller.** It sends [`QueueInput::Advance`] after *every* event of the queue,
//! with that event as the cause; an assignment is such an event, so this goes on until there is
//! nothing to assign. One cause leads to one event of the queue at most, so each debate is released
//! by an event of its own: a case that is cancelled cannot release several. Only debates that were
//! sent to the queue are released. Whether a sender may register or remove an expert, or reassign,
//! is checked by the caller. The capacity that counts is the one at the time: an expert who
//! registers again with a smaller one keeps the debates they have, and is given no more until there
//! is room.

use concord_events::{
    AggregateEvent, Enqueued, ExpertRegistered, Origin, ReleaseReason, ReviewQueueEvent,
    StoredEvent, event_id,
};
use concord_wire::payload::Overflow;
use concord_wire::{AgentId, DebateId, MessageId, Token};

mod decide;
mod order;
mod recent;
mod state;
mod verify;
mod waiting;

pub use recent::Recent;
pub use state::{Holder, QueueState, QueuedDebate, RegisteredExpert};
pub use verify::{decide_again, over_capacity};
pub use waiting::{Place, Waiting};

use crate::machine::{Context, Decision, Machine, forgetting};

/// Most experts of an installation.
pub const EXPERTS_MAX: usize = 1_000;
/// How many finished debates are remembered.
pub const FINISHED_MAX: usize = 10_000;
/// How many causes are remembered, to recognise a repetition.
pub const CAUSES_MAX: usize = 10_000;

/// The id of the one review queue of an installation.
pub fn id() -> Token {
    Token::fixed("experts")
}

/// The id of the event that `cause` can lead to.
fn event_id_of(origin: Origin, cause: &MessageId) -> MessageId {
    event_id(ReviewQueueEvent::AGGREGATE, &id(), origin, cause)
}

/// The state machine of the review queue.
#[derive(Debug, Clone, Copy)]
pub struct ReviewQueueMachine;

/// One input of the review queue. Faults point into the parameters of a request:
/// `/payload/parameters/...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueInput {
    /// Registers an expert, or replaces the expert's particulars.
    Register(Box<ExpertRegistered>),
    /// Removes an expert.
    Leave {
        /// The expert.
        agent_id: AgentId,
        /// The operator.
        by: AgentId,
        /// The operator's reason; may be empty.
        why: String,
        /// The sequence of the person's event that this follows; 0 where it follows none.
        follows: u64,
        /// Whether the event says that they were an expert, whom the queue may not know yet.
        was_expert: bool,
    },
    /// Adds a debate that needs a person.
    Enqueue(Box<Enqueue>),
    /// Assigns the first debate that some expert can take.
    Advance,
    /// Takes a debate from an expert who lets it lie, where somebody else can take it.
    GiveBack {
        /// The debate.
        debate_id: DebateId,
        /// The expert.
        expert: AgentId,
    },
    /// Releases a debate that needs no person any more.
    Release {
        /// The debate.
        debate_id: DebateId,
        /// The reason.
        reason: ReleaseReason,
    },
    /// Assigns a debate to an expert of the operator's choice, whatever its domain and its place in
    /// the queue.
    Reassign {
        /// The debate.
        debate_id: DebateId,
        /// The expert.
        to: AgentId,
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
}

/// A debate that needs a person, with what its policy says about the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueue {
    /// The debate as it would wait. `entered_at` is the time at which it came to need a person, not
    /// the time of this input.
    pub entry: Enqueued,
    /// What happens to it when the queue is full.
    pub overflow: Overflow,
    /// How many debates may wait before others overflow. `entry` has the bound for one opener. Supporting debates never wait while
    /// experts have no room.
    pub queue_max: u32,
}

impl Machine for ReviewQueueMachine {
    type State = QueueState;
    type Event = ReviewQueueEvent;
    type Input = QueueInput;

    fn state_bytes_max(state: &QueueState) -> usize {
        let places = state.experts.len() + state.debates.len();
        let remembered = state.finished.len() + state.causes.len() + state.followed.len();
        forgetting(places * 2_048 + remembered * 128)
    }

    fn decide(
        state: &QueueState,
        context: &Context,
        input: &QueueInput,
    ) -> Decision<ReviewQueueEvent> {
        decide::decide(state, context, input)
    }

    fn apply(state: &mut QueueState, record: StoredEvent<ReviewQueueEvent>) {
        state.apply(record);
    }
}

#[cfg(test)]
mod tests;
