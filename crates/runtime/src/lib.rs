//! What all services share, and the only crate with a NATS client and tokio in its API.
//!
//! A service is its settings, a [`service::Run`] and the handlers that it binds to consumers. Everything that it does to an
//! aggregate is a [`step`](event_store::step); everything that it says follows from stored events by
//! [`effects`](event_store::effects). What handlers need of the world are traits, the [`ports`]; the simulator implements them
//! with a world of its own, so the handlers that are simulated are those that run.
//!
//! The modules know each other in one direction, each only those before it (`tests/one_way.rs` holds it):
//!
//! 1. [`error_chain`], [`clock`], [`settings`], [`signing`], [`telemetry`]: what needs no broker.
//! 2. [`broker`]: the connection, streams and consumers, storing and pulling messages.
//! 3. [`codec`]: from the bytes of a message to an envelope, and back.
//! 4. [`event_store`]: reading and appending events, the step, publishing what follows from events.
//! 5. [`ports`]: what handlers need of the world, and NATS as that world.
//! 6. [`context`]: what the handlers of one service share.
//! 7. [`delivery`]: handlers, and what becomes of a delivery that was handled, refused or given up.
//! 8. `admission`: whether and when a delivery is worked on.
//! 9. [`service`]: what runs the consumers and the process.

mod admission;
pub mod broker;
pub mod clock;
pub mod codec;
pub mod context;
pub mod delivery;
pub mod error_chain;
pub mod event_store;
pub mod ports;
pub mod service;
pub mod settings;
pub mod signing;
pub mod telemetry;

/// The services allocate many small things for each message and free them on another thread, which the C library's
/// allocator is slow at (`docs/adr/0012`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use broker::Broker;
pub use context::trace_context::TraceContext;
pub use delivery::route::Routed;
pub use delivery::{Delivery, HandleError, Handler};
pub use event_store::nats::NatsPorts;
pub use event_store::step::{Aggregates, Outcome};
pub use event_store::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, Since,
};
pub use ports::Ports;
pub use service::directory::Directory;
pub use service::people::People;
pub use telemetry::trace::Trace;
