//! Running the command.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// No single command takes longer, on however slow a machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a command has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// It has succeeded and complained of nothing.
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(
            !self.out.contains('\u{1b}'),
            "colours are for terminals: {self:?}"
        );
        self.out
    }

    /// It has succeeded, and its output is JSON.
    pub(crate) fn json(self) -> Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// It has failed with this code, in one clear line.
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        assert!(
            self.err.starts_with("error: ") && !self.err.contains("panicked"),
            "{self:?}"
        );
        self.err
    }
}

/// The command, without the environment of whoever runs the tests.
pub(crate) fn concord() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concord"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CONCORD_"))
    {
        command.env_remove(name);
    }
    command
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub(crate) async fn run(arguments: &[&str]) -> Said {
    finish(concord().args(arguments)).await
}

/// Runs a command to its end.
pub(crate) async fn finish(command: &mut Command) -> Said {
    Said::new(
        tokio::time::timeout(LONG, command.output())
            .await
            .expect("the command ends")
            .unwrap(),
    )
}

/// Runs the command with this on standard input.
pub(crate) async fn run_with(arguments: &[&str], input: &[u8]) -> Said {
    let mut child = concord()
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that has seen enough closes its end early.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    Said::new(
        tokio::time::timeout(LONG, child.wait_with_output())
            .await
            .expect("the command ends")
            .unwrap(),
    )
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
