//! Running a command as a user does, and checking what it prints.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::programs::concord_program;

/// No single command takes longer, on however slow a machine.
pub const COMMAND_MAX: Duration = Duration::from_secs(180);

/// The exit code and the output of a command.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for CommandOutput {
    /// # Panics
    /// When the output is not UTF-8, or a signal has ended the command.
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is UTF-8");
        Self {
            code: output.status.code().expect("the command ended by itself"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl CommandOutput {
    /// Standard output of a command that has succeeded and printed no colours.
    ///
    /// # Panics
    /// When the command has failed or printed colours.
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(
            !self.out.contains('\u{1b}'),
            "colours are for terminals: {self:?}"
        );
        self.out
    }

    /// Standard output of a command that has succeeded, as JSON.
    ///
    /// # Panics
    /// When the command has failed, or its output is no JSON.
    pub fn json(self) -> Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Standard error of a command that has failed with this code and one clear line, and printed nothing else.
    ///
    /// # Panics
    /// When the command ended in any other way.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        assert!(
            self.err.starts_with("error: ") && !self.err.contains("panicked"),
            "{self:?}"
        );
        self.err
    }
}

/// A program of Concord, without the settings in the environment of whoever runs the tests.
pub fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
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

/// Runs a command to its end.
///
/// # Panics
/// When it cannot be started, or takes longer than [`COMMAND_MAX`].
pub async fn finish(command: &mut Command) -> CommandOutput {
    let output = tokio::time::timeout(COMMAND_MAX, command.output()).await;
    output
        .expect("the command ends")
        .expect("the command can be started")
        .into()
}

/// Runs the command `concord` on this server to its end.
///
/// # Panics
/// When it cannot be built or started, or takes longer than [`COMMAND_MAX`].
pub async fn concord_at(server: &str, arguments: &[&str]) -> CommandOutput {
    let mut run = command(concord_program());
    finish(run.args(["--server", server]).args(arguments)).await
}
