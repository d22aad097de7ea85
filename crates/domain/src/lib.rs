//! Every decision of Concord, pure.
//!
//! A state machine here is a folder: its state, what it decides ([`Machine::decide`]), how a fact changes its state
//! ([`Machine::apply`]) and what follows from a fact ([`Machine::effects`]). Beside the machines stand the algorithms:
//! [`conflict`](rules::conflict) (the five rules), [`canonical`](rules::canonical) (when are two positions the same), [`vote`](rules::vote), and [`size_budget`](rules::size_budget) (what there is
//! room for in a fact).
//!
//! There is no clock, no randomness, no IO and no async in this crate: time and ids are arguments. A test reads the
//! dependency tree to hold that, and clippy names the replacement for each forbidden call.

pub mod activation;
pub mod aggregates;
pub mod assurance;
pub mod coordination_metrics;
mod digest;
pub mod effect;
pub mod event_chain;
#[cfg(test)]
mod fixtures;
pub mod machine;
#[cfg(test)]
mod properties;
pub mod resilience;
pub mod rules;
pub mod text;

pub use aggregates::table::{MachineVisitor, visit_machine};
pub use digest::{digest, digest_of_all};
pub use effect::Effect;
pub use machine::{Context, Decision, Ignored, Machine, Versioned};
