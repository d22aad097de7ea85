//! The decisions of Concord, as pure functions.
//!
//! A state machine in [`aggregates`] has a state, decides ([`Machine::decide`]) about inputs,
//! changes its state by events ([`Machine::apply`]), and has effects ([`Machine::effects`]). Beside
//! the machines are the algorithms in [`rules`], how failing calls are treated in [`resilience`],
//! which agents a message activates in [`activation`], and the checks over what is stored in
//! [`assurance`].
//!
//! There is no clock, no randomness, no IO and no async in this crate: time and ids are arguments.
//! A test reads the dependency tree to ensure that, and clippy names the replacement for each
//! forbidden call.

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
pub mod meeting;
#[cfg(test)]
mod properties;
pub mod resilience;
pub mod rules;
pub mod text;

pub use aggregates::table::{MachineVisitor, visit_machine};
pub use digest::{digest, digest_of_all};
pub use effect::Effect;
pub use machine::{Context, Decision, Ignored, Machine, Versioned};
