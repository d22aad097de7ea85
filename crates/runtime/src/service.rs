//! A running service: what its handlers share ([`ServiceContext`]) and what runs them ([`ServiceRunner`]).

pub mod api;
mod binder;
pub mod clock;
mod context;
pub mod directory;
pub mod health;
pub mod metrics;
pub mod operator_api;
pub mod otlp;
mod process;
mod runner;
pub mod settings;
pub mod shutdown;
pub mod telemetry;

pub use binder::Binder;
pub use context::ServiceContext;
pub use process::{Arguments, Run, main};
pub use runner::ServiceRunner;
