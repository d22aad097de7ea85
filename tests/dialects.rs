//! Agents that speak nothing but a dialect, on a real broker with real services: each takes part in a whole case, and errors
//! are sent to it in its dialect.

use std::time::Duration;

mod cases;
mod dialect_message;
mod errors;
mod repetition;
mod responses;
mod sending;
mod unnamed;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
