//! The client libraries: what they say is what `clients/conformance.json` says they do, and so says an agent with nothing
//! but NATS; the agents of their READMEs decide a case.

mod cases;
mod conformance;
mod large;
mod life;
mod python;
mod raw;
mod rust;
mod stage;
mod trouble;
