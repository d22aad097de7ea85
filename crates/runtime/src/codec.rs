//! From the bytes of a message to an envelope, and back.

pub(crate) mod claim_check;
pub mod dialect;
pub mod trace;
pub(crate) mod trace_context;
pub mod wire_preferences;
