//! Every decision of Concord, pure.
//!
//! A state machine here is a folder: its state, what it decides ([`Machine::decide`]), how a fact changes its state
//! ([`Machine::apply`]) and what follows from a fact ([`Machine::effects`]). Beside the machines stand the algorithms:
//! [`conflict`] (the five rules), [`canonical`] (when are two positions the same), [`vote`], and [`size_budget`] (what there is
//! room for in a fact).
//!
//! There is no clock, no randomness, no IO and no async in this crate: time and ids are arguments. A test reads the
//! dependency tree to hold that, and clippy names the replacement for each forbidden call.

pub mod activation;
pub mod agent;
pub mod audit;
pub mod breaker;
pub mod calendar;
pub mod call_policy;
pub mod canonical;
pub mod case;
pub mod conflict;
pub mod conservative;
pub mod coordination_metrics;
pub mod credibility;
pub mod deadline;
pub mod debate;
pub mod detection;
mod digest;
pub mod effect;
pub mod escalation;
pub mod estimate;
pub mod event_chain;
#[cfg(test)]
mod fixtures;
pub mod machine;
pub mod machines;
pub mod precedent;
#[cfg(test)]
mod properties;
pub mod replay;
pub mod request;
pub mod review_queue;
pub mod size_budget;
pub mod text;
pub mod track_record;
pub mod vote;

pub use digest::{digest, digest_of_all};
pub use effect::Effect;
pub use machine::{Context, Decision, Ignored, Machine, Versioned};
pub use machines::{MachineVisitor, visit_machine};
