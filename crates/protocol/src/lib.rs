//! The wire contract of Concord: what may be said, on which subject, in which form, and where it is kept.
//!
//! This crate does no IO, reads no clock and knows neither tokio nor a NATS client. Everything that two
//! processes must agree on is here once: [`subject`] spells every subject, [`stream`] defines every stream
//! and consumer as data, [`envelope`] is the one JSON envelope, [`payload`] its contents by message type,
//! [`event`] the facts the services store, [`error_code`] the codes that reach a sender or an operator.

pub mod dead;
pub mod dialect;
pub mod encoding;
pub mod envelope;
pub mod error_code;
pub mod event;
pub mod extensions;
pub mod fault;
pub mod foreign;
pub mod header;
pub mod hex;
pub mod id;
pub mod payload;
pub mod policy;
pub mod schema;
pub mod stream;
pub mod subject;
pub mod timestamp;
pub mod trace;

pub use dialect::Dialect;
pub use encoding::Encoding;
pub use envelope::{Envelope, MessageType, Metadata, Priority};
pub use error_code::ErrorCode;
pub use extensions::Extensions;
pub use fault::Fault;
pub use id::{AgentId, CaseId, DebateId, MessageId, Recipient, Token, without_place};
pub use timestamp::Timestamp;
