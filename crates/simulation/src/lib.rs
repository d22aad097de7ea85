//! A seeded world for Concord.
//!
//! The services' own handlers run here as they run in production: each service binds them to consumers in one function, and
//! the simulator gives them ports of its own ([`concord_runtime::ports`]). The rest of the world is made up: virtual time, a
//! broker that delays, reorders, doubles and loses, processes that are killed between any two lines of a handler, and people
//! who say anything at any time. A seed decides everything, so a failure is a seed and a commit. When faults have stopped and
//! nothing moves any more, the invariants of the design are checked.
//!
//! A hosted agent, its circuit breaker and its queue have small worlds of their own ([`Options::hosted`]).
//!
//! Not modelled: the loss of what the broker has acknowledged, clocks that disagree, and the runtime's own pulling,
//! reconnecting and shutting down. Tests against a real broker are for these.

mod activation;
mod agents;
mod broker;
mod check;
pub mod cli;
mod executor;
mod faults;
mod hosted;
mod injected_bugs;
mod network;
mod oneshot;
mod options;
mod owners;
mod plan;
mod policies;
mod ports;
mod process;
mod random;
mod report;
#[cfg(test)]
mod scenarios;
mod scheduler;
mod simulation;
mod world;

pub use faults::{Faults, InjectedBug};
pub use options::Options;
pub use report::{Counts, HostedCounts, LadderCounts, SeedReport, WORLD_VERSION};
pub use simulation::run;
