//! The ladder of escalation with real processes on a real broker, in scaled time.

use std::time::Duration;

mod cancelled;
mod conceded;
mod decision;
mod estimates;
mod gate;
mod impact;
mod in_time;
mod responses;
mod ruling;
mod signed;
mod stage;
mod stands;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
