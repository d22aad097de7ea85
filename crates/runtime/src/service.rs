//! A running service: what its handlers share ([`ServiceContext`]) and what runs them ([`ServiceRunner`]).

mod agent_index;
pub mod api;
mod archived;
mod binder;
pub mod directory;
pub(crate) mod hand_off;
pub mod health;
pub mod operator_api;
pub mod owned;
pub mod payloads;
pub mod people;
pub(crate) mod poison;
mod process;
pub mod reading;
mod redo;
pub mod replicas;
mod runner;
pub mod shutdown;
pub mod under_way;
pub(crate) mod worker;

// The names by which other crates know what the folders before this one define.
pub use crate::context::{ServiceContext, metrics};
pub use crate::{clock, settings, telemetry};
pub use binder::Binder;
pub use process::{Arguments, Run, main};
pub use replicas::Replicas;
pub use runner::ServiceRunner;
