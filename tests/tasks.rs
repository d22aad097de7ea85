//! Tasks that strategies hand out to agents that have only a NATS client, and what becomes of bad input. Real broker and services.

use std::time::Duration;

mod bad_input;
mod command;
mod estimates;
mod killed;
mod panels;
mod quotas;
mod reruns;
mod responses;
mod silence;
pub(crate) mod stage;
mod strategies;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
