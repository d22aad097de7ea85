//! All state machines, as the table of aggregates lists them.

use concord_events::{Aggregate, aggregates};

use crate::Machine;
use crate::activation::conversation::WakeMachine;
use crate::aggregates::agent::AgentMachine;
use crate::aggregates::case::CaseMachine;
use crate::aggregates::deadline::DeadlineMachine;
use crate::aggregates::debate::DebateMachine;
use crate::aggregates::detection::DetectionMachine;
use crate::aggregates::precedent::PrecedentMachine;
use crate::aggregates::request::RequestMachine;
use crate::aggregates::review_queue::ReviewQueueMachine;
use crate::aggregates::track_record::TrackRecordMachine;

/// Does something with the state machine of one aggregate; see [`visit_machine`].
pub trait MachineVisitor {
    /// What comes of it.
    type Output;

    /// Called with the state machine of the aggregate that was asked for.
    fn visit<M: Machine>(self) -> Self::Output;
}

macro_rules! define_visit_machine {
    ($(
        $(#[$doc:meta])* $name:ident = $token:literal {
            event: $event:ident, machine: $machine:ident, $($rest:tt)*
        }
    )+) => {
        /// Calls `visitor` with the state machine of `aggregate`.
        pub fn visit_machine<V: MachineVisitor>(aggregate: Aggregate, visitor: V) -> V::Output {
            match aggregate { $(Aggregate::$name => visitor.visit::<$machine>()),+ }
        }
    };
}

aggregates!(define_visit_machine);
