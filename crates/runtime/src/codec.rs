//! From the bytes of a message to an envelope, and back.

pub(crate) mod claim_check;
pub mod dialect;
pub mod message_lookup;
mod read_message;
mod subscription;

use concord_wire::Fault;

use crate::broker::Unavailable;

pub use read_message::{StoredMessage, parse_subject, read_message};
pub use subscription::ObservedMessage;

/// Why a message was not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not as the contract says, which is its sender's mistake.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// The broker did not give its payload.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
