//! The `concord-lab` command as a user meets it.

// Helpers of tests fail by panicking, which the workspace allows in the tests themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use concord_testkit::{CommandOutput, finish};
use tokio::process::Command;

mod bench;
mod eval;

/// The command, without the environment of whoever runs the tests.
fn concord_lab() -> Command {
    concord_testkit::command(env!("CARGO_BIN_EXE_concord-lab"))
}

/// Runs the command to its end.
async fn run(arguments: &[&str]) -> CommandOutput {
    finish(concord_lab().args(arguments)).await
}
