//! The register of agents and their liveness, requests of agents to agents, and whom messages wake. Real broker and
//! services.

use std::time::Duration;

mod asking;
mod backlog;
mod coordination;
mod endings;
mod flood;
mod looking_back;
mod loops;
mod outside;
mod pairing;
mod payloads;
mod references;
mod register;
mod requests;
mod stage;
mod wake;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
