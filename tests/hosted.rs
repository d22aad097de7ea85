//! Hosted agents that are servers and models, on a real broker with real processes.

mod again;
mod alerts;
mod budgets;
mod decision;
mod dialects;
mod embeddings;
mod failing;
mod hearing;
mod insights;
mod journey;
mod killed;
mod large;
mod loops;
mod registering;
mod requests;
pub(crate) mod stage;
mod tasks;
mod told;
