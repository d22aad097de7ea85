//! Running the command.

use std::process::Stdio;

use concord_testkit::{COMMAND_MAX, CommandOutput, finish};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The command, without the environment of whoever runs the tests.
pub(crate) fn concord() -> Command {
    concord_testkit::command(env!("CARGO_BIN_EXE_concord"))
}

/// Runs the command to its end.
pub(crate) async fn run(arguments: &[&str]) -> CommandOutput {
    finish(concord().args(arguments)).await
}

/// Runs the command with this on standard input.
pub(crate) async fn run_with(arguments: &[&str], input: &[u8]) -> CommandOutput {
    let mut child = concord()
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that has seen enough closes its end early.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    tokio::time::timeout(COMMAND_MAX, child.wait_with_output())
        .await
        .expect("the command ends")
        .unwrap()
        .into()
}

/// A case with these participants.
pub(crate) fn case(id: &str, participants: &[&str]) -> Value {
    json!({
        "case_id": id,
        "participants": participants,
        "policy": { "preset": "contract-review", "rounds_max": 1 },
        "task": { "type": "contract_review", "title": "Lease of a warehouse", "input": {} },
    })
}
