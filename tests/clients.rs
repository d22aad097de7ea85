//! The client libraries do what `clients/conformance.json` says, and so does an agent with nothing but a NATS client; the agents
//! of the libraries' READMEs decide a case.

mod alerts;
mod asking;
mod cases;
mod closing;
mod conformance;
mod joining;
mod kept;
mod large;
mod life;
mod memory;
mod plain;
mod python;
mod raw;
mod rust;
mod saying;
mod silencing;
pub(crate) mod stage;
mod trouble;
