//! The shell that all services share, and the only crate with a NATS client and tokio in its API.
//!
//! A service is its settings, a [`service::Service`] and the consumers it runs. Everything it does to an aggregate is
//! [`step`]; everything it says follows from stored facts by [`effects`]. [`event_store`] is what the step needs of the
//! broker; the simulator implements it with a world of its own, so the step that is simulated is the step that runs.

pub mod api;
pub mod broker;
mod backlog_bypass;
pub mod reject_all;
pub mod clock;
pub mod otlp;
pub mod delivery;
mod trace_context;
pub mod dead_letter;
mod raw_message;
pub mod dialect;
pub mod directory;
pub mod effects;
pub mod handlers;
pub mod non_event;
pub mod health;
pub mod event_store;
mod rate_limit;
mod fair_queue;
pub mod metrics;
pub mod nats_event_store;
pub mod operator_api;
mod claim_check;
mod delivery_info;
pub mod provision;
mod pull;
mod poison;
pub mod reject;
pub mod shared_value;
pub mod route;
mod deadline_burst;
pub mod service;
pub mod settings;
pub mod shutdown;
pub mod wire_preferences;
pub mod step;
pub mod publish;
pub mod telemetry;
pub mod trace;
pub mod message_lookup;
mod worker;

/// The services allocate many small things for each message and free them on another thread, which the C library's
/// allocator is slow at (`docs/adr/0012`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use broker::Broker;
pub use delivery::{Delivery, Handler, Problem};
pub use trace_context::Contexts;
pub use directory::Directory;
pub use event_store::{Appended, Ledger, Loaded, Outbox, Read};
pub use route::Routed;
pub use step::{Aggregates, Outcome};
pub use trace::Trace;
