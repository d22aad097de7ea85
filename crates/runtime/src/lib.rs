//! The shell that all services share, and the only crate with a NATS client and tokio in its API.
//!
//! A service is its settings, a [`service::Service`] and the consumers it runs. Everything it does to an aggregate is
//! [`step`]; everything it says follows from stored facts by [`effects`]. [`ledger`] is what the step needs of the
//! broker; the simulator implements it with a world of its own, so the step that is simulated is the step that runs.

pub mod api;
pub mod broker;
mod bypass;
pub mod bystander;
pub mod clock;
pub mod collector;
pub mod consume;
mod contexts;
pub mod dead;
mod described;
pub mod dialect;
pub mod directory;
pub mod effects;
pub mod feed;
pub mod foreign;
pub mod health;
pub mod ledger;
mod limit;
mod line;
pub mod metrics;
pub mod nats_ledger;
pub mod operate;
mod payload;
mod place;
pub mod provision;
mod pull;
mod quarantine;
pub mod refuse;
pub mod register;
pub mod route;
mod rush;
pub mod service;
pub mod settings;
pub mod shutdown;
pub mod spoken;
pub mod step;
pub mod store;
pub mod telemetry;
pub mod trace;
pub mod transcript;
mod worker;

/// The services allocate many small things for each message and free them on another thread, which the C library's
/// allocator is slow at (`docs/adr/0012`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use broker::Broker;
pub use consume::{Delivery, Handler, Problem};
pub use contexts::Contexts;
pub use directory::Directory;
pub use ledger::{Appended, Ledger, Loaded, Outbox, Read};
pub use route::Routed;
pub use step::{Aggregates, Outcome};
pub use trace::Trace;
