//! The private events of Concord's services, and the topology of the streams and consumers that hold them.
//!
//! [`aggregates`] is the table of all aggregates: start there. The events of one aggregate are an enum, in a module named like
//! the aggregate; [`StoredEvent`] is the form in which one of them is stored. [`topology`] defines every stream and consumer as
//! data, [`subject`] the subjects of events, deadlines and dead letters, [`dead_letter`] what could not be processed.
//!
//! Agents need nothing of this crate: what they may rely on is in `concord-wire`. There is no IO here.

pub mod aggregates;
pub mod dead_letter;
mod event;
pub mod non_event;
mod stored_event;
pub mod subject;
pub mod topology;

pub use aggregates::{Aggregate, EventVisitor, all_events};
pub use event::*;
pub use stored_event::{
    AggregateEvent, CarriedState, EARLIER_MAX, Error, EventInfo, EventMeta, Origin, StoredEvent,
    event_id,
};
// Events contain these, and notifications repeat them to agents.
pub use concord_wire::payload::{Deadline, EscalationReason, ProvedParty, Remembered};
