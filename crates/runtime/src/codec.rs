//! From the bytes of a message to an envelope, and back.

pub(crate) mod claim_check;
pub mod dialect;
pub mod trace;
pub(crate) mod trace_context;
pub mod wire_preferences;

use concord_wire::Fault;

use crate::broker::Unavailable;

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
