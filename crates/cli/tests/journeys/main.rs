//! The `concord` command as a user meets it: the real program, a real broker, real services.

// Helpers of tests fail by panicking, which the workspace allows in the tests themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod ask;
mod cases;
mod command;
mod dead;
mod doctor;
mod input;
mod metrics;
mod migrate;
mod package;
mod people;
mod record;
mod redeliver;
mod unknown;
mod up;
