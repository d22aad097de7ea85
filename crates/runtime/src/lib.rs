//! The shell that all services share, and the only crate with a NATS client and tokio in its API.
//!
//! A service is its settings, a [`service::Service`] and the consumers it runs. Everything it does to an aggregate is
//! [`step`]; everything it says follows from stored facts by [`effects`]. [`event_store`] is what the step needs of the
//! broker; the simulator implements it with a world of its own, so the step that is simulated is the step that runs.

pub mod api;
mod backlog_bypass;
pub mod broker;
mod claim_check;
pub mod clock;
pub mod dead_letter;
mod deadline_burst;
pub mod delivery;
mod delivery_info;
pub mod dialect;
pub mod directory;
pub mod effects;
pub mod event_store;
mod fair_queue;
pub mod handlers;
pub mod health;
pub mod message_lookup;
pub mod metrics;
pub mod nats_event_store;
pub mod non_event;
pub mod operator_api;
pub mod otlp;
mod poison;
pub mod provision;
pub mod publish;
mod pull;
mod rate_limit;
mod raw_message;
pub mod reject;
pub mod reject_all;
pub mod route;
pub mod service;
pub mod settings;
pub mod shared_value;
pub mod shutdown;
pub mod step;
pub mod telemetry;
pub mod trace;
mod trace_context;
pub mod wire_preferences;
mod worker;

/// The services allocate many small things for each message and free them on another thread, which the C library's
/// allocator is slow at (`docs/adr/0012`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use broker::Broker;
pub use delivery::{Delivery, HandleError, Handler};
pub use directory::Directory;
pub use event_store::{Appended, Consistency, EventStore, Loaded, Publisher};
pub use route::Routed;
pub use step::{Aggregates, Outcome};
pub use trace::Trace;
pub use trace_context::TraceContext;
