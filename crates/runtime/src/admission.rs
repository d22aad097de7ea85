//! How much of what arrives is worked on, and in which order: limits for senders, reading past a flood, deadlines first.

pub(crate) mod backlog_bypass;
pub(crate) mod deadline_burst;
pub(crate) mod rate_limit;
