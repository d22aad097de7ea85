//! The register of agents and their liveness, and requests of agents to agents. Real broker and services.

use std::time::Duration;

mod flood;
mod loops;
mod payloads;
mod register;
mod requests;
mod stage;
mod wake;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
