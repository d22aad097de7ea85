//! The shell that all services share, and the only crate with a NATS client and tokio in its API.
//!
//! A service is its settings, a [`service::Service`] and the consumers it runs. Everything it does to an aggregate is
//! [`step`](event_store::step); everything it says follows from stored facts by [`effects`](event_store::effects). [`event_store`] is what the step needs of the
//! broker; the simulator implements it with a world of its own, so the step that is simulated is the step that runs.

pub mod admission;
pub mod broker;
pub mod codec;
pub mod delivery;
pub mod event_store;
pub mod ports;
pub mod service;

/// The services allocate many small things for each message and free them on another thread, which the C library's
/// allocator is slow at (`docs/adr/0012`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use broker::Broker;
pub use codec::trace::Trace;
pub use codec::trace_context::TraceContext;
pub use delivery::route::Routed;
pub use delivery::{Delivery, HandleError, Handler};
pub use event_store::step::{Aggregates, Outcome};
pub use event_store::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent,
};
pub use ports::Ports;
pub use ports::nats::NatsPorts;
pub use service::directory::Directory;
