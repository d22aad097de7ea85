//! What is decided around a call of a hosted agent; nothing of it is stored.

pub mod breaker;
pub mod call_policy;
