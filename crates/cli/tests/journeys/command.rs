//! Running the command.

use std::process::Stdio;

use concord_testkit::{COMMAND_MAX, CommandOutput, finish, until};
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

/// The arguments of a command line; words in single quotes are one argument.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
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

/// The command on one installation.
pub(crate) struct Session {
    url: String,
}

impl Session {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }

    pub(crate) fn arguments(&self, line: &str) -> Vec<String> {
        let mut arguments = words(line);
        arguments.extend(["--server".to_owned(), self.url.clone()]);
        arguments
    }

    /// Runs a command line; words in single quotes are one argument.
    pub(crate) async fn run(&self, line: &str) -> CommandOutput {
        finish(concord().args(self.arguments(line))).await
    }

    pub(crate) async fn good(&self, line: &str) -> String {
        self.run(line).await.good()
    }

    pub(crate) async fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).await.json()
    }

    /// The command is refused with a message that contains `part`.
    pub(crate) async fn refused(&self, line: &str, part: &str) {
        let error = self.run(line).await.refused(1);
        assert!(error.contains(part), "{line}: {error}");
    }

    /// Runs a command line with this on standard input.
    pub(crate) async fn with_input(&self, line: &str, input: &str) -> CommandOutput {
        let arguments = self.arguments(line);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run_with(&arguments, input.as_bytes()).await
    }

    /// Runs the command again and again until its answer is as it should be.
    pub(crate) async fn until(&self, line: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let answered = until(line, COMMAND_MAX, async || {
            let answered = self.run(&format!("{line} --json")).await;
            // It may not know yet what it is asked for.
            if answered.code != 0 {
                return Err(answered.err);
            }
            let answer = answered.json();
            if is_it(&answer) {
                Ok(answer)
            } else {
                Err(answer.to_string())
            }
        });
        answered.await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Asks the doctor until its answer is as it should be: a process that is slow to answer counts as missing.
pub(crate) async fn doctor_until(
    arguments: &[&str],
    is_it: impl Fn(&CommandOutput) -> bool,
) -> CommandOutput {
    let arguments = [&["doctor"], arguments].concat();
    let found = until("the doctor's answer", COMMAND_MAX, async || {
        let found = run(&arguments).await;
        is_it(&found)
            .then_some(found.clone())
            .ok_or_else(|| format!("{found:?}"))
    });
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

/// The number of elements of a JSON array.
pub(crate) fn length(list: &Value) -> usize {
    list.as_array().unwrap().len()
}
