//! The wire contract of Concord: what agents may rely on.
//!
//! [`subject`] builds and parses the subjects of messages, [`envelope`] is the one JSON envelope, [`payload`] its contents by
//! message type, [`payload::notification`] the table of the notifications that Concord sends, [`dialect`] the other formats that agents may speak, [`error_code`] the codes that reach a sender or an operator.
//! The private events of the services, and the streams and consumers that hold them, are in `concord-events`.
//!
//! This crate does no IO, reads no clock and knows neither tokio nor a NATS client.

pub mod dialect;
pub mod encoding;
pub mod envelope;
pub mod error_code;
pub mod extensions;
pub mod fault;
pub mod header;
pub mod hex;
pub mod id;
pub mod payload;
pub mod policy;
pub mod subject;
pub mod timestamp;
pub mod trace;

pub use dialect::Dialect;
pub use encoding::Encoding;
pub use envelope::{Envelope, MessageType, Metadata, Priority};
pub use error_code::ErrorCode;
pub use extensions::Extensions;
pub use fault::Fault;
pub use id::{AgentId, CaseId, DebateId, MessageId, Recipient, Token, without_sequence};
pub use timestamp::Timestamp;

/// Makes the schema of a type inside a JSON Schema document, as a reference into the document's definitions.
pub type MakeSchema = fn(&mut schemars::SchemaGenerator) -> schemars::Schema;
