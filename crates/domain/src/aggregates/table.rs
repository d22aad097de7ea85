//! The visitor of all state machines, made from the table of aggregates.

use concord_events::{Aggregate, aggregates};

use crate::Machine;
use crate::activation::conversation::WakeMachine;
use crate::aggregates::agent::AgentMachine;
use crate::aggregates::alert::AlertMachine;
use crate::aggregates::archive::ArchiveMachine;
use crate::aggregates::board::BoardMachine;
use crate::aggregates::case::CaseMachine;
use crate::aggregates::commitment::CommitmentMachine;
use crate::aggregates::deadline::DeadlineMachine;
use crate::aggregates::debate::DebateMachine;
use crate::aggregates::detection::DetectionMachine;
use crate::aggregates::head::HeadMachine;
use crate::aggregates::impact::ImpactMachine;
use crate::aggregates::memory::MemoryMachine;
use crate::aggregates::opener::OpenerMachine;
use crate::aggregates::person::PersonMachine;
use crate::aggregates::policy::PolicyMachine;
use crate::aggregates::precedent::PrecedentMachine;
use crate::aggregates::question::QuestionMachine;
use crate::aggregates::request::RequestMachine;
use crate::aggregates::review_queue::ReviewQueueMachine;
use crate::aggregates::rotation::RotationMachine;
use crate::aggregates::synthesis::SynthesisMachine;
use crate::aggregates::task::TaskMachine;
use crate::aggregates::track_record::TrackRecordMachine;
use crate::aggregates::watch::WatchMachine;
use crate::aggregates::worklist::WorklistMachine;

/// Does something that depends on the state machine of an aggregate; see [`visit_machine`].
pub trait MachineVisitor {
    /// The result of the visit.
    type Output;

    /// Called with the state machine of the aggregate.
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
