//! One running copy of a program, which reads one line and writes one line.

use std::process::Stdio;
use std::time::Duration;

use concord_wire::AgentId;
use futures::FutureExt;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::settings::HostedAgent;

/// Longest line that a program may answer.
const LINE_BYTES_MAX: u64 = 1_048_576;

/// Bytes of a line of standard error that are logged at once.
const LOGGED_BYTES_MAX: u64 = 500;

/// Logs what a program writes to its standard error, to the end: one that is not read would be held up, and what has no end must
/// not be gathered.
async fn log(agent: AgentId, errors: ChildStderr) {
    let (mut errors, mut line) = (BufReader::new(errors), Vec::new());
    loop {
        line.clear();
        match (&mut errors)
            .take(LOGGED_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) => return,
            Ok(_) => {
                tracing::info!(%agent, "The program says: {}", String::from_utf8_lossy(&line).trim_end())
            }
            Err(error) => {
                tracing::debug!(%agent, %error, "The program's standard error cannot be read.");
                return;
            }
        }
    }
}

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It could not be started.
    #[error("the program {program:?} cannot be started")]
    Start {
        /// Its name.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It ended, or closed its standard output.
    #[error("the program ended before it had answered")]
    Ended,
    /// It could not be written to or read from.
    #[error("the program cannot be spoken to")]
    Pipe(#[from] std::io::Error),
    /// It took too long.
    #[error("the program did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// Its answer has no end.
    #[error("the program's answer is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// One running copy. Ended when dropped, with whatever it has started.
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(agent: &HostedAgent) -> Result<Self, Error> {
        let name = agent.command.first().cloned().unwrap_or_default();
        let failed = |source| Error::Start {
            program: name.clone(),
            source,
        };
        let mut command = Command::new(&name);
        command
            .args(agent.command.iter().skip(1))
            .envs(&agent.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Of its own: what hangs is often not the shell but what it has started, and a Ctrl-C is for the adapter alone.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &agent.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(failed)?;
        let missing = || failed(std::io::Error::other("it has no standard input and output"));
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        if let Some(errors) = child.stderr.take() {
            let agent = agent.agent_id.clone();
            tokio::spawn(log(agent, errors));
        }
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Whether the program runs and has written nothing unasked.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.output.fill_buf().now_or_never().is_none()
    }

    /// Gives the program one line and waits for its answer.
    pub(crate) async fn ask(&mut self, line: &[u8], within: Duration) -> Result<Vec<u8>, Error> {
        tokio::time::timeout(within, self.exchange(line))
            .await
            .map_err(|_| Error::Timeout(within))?
    }

    async fn exchange(&mut self, line: &[u8]) -> Result<Vec<u8>, Error> {
        self.input.write_all(line).await?;
        self.input.write_all(b"\n").await?;
        self.input.flush().await?;
        let mut answer = Vec::new();
        (&mut self.output)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut answer)
            .await?;
        match answer.pop() {
            Some(b'\n') => Ok(answer),
            Some(_) if answer.len() as u64 + 1 >= LINE_BYTES_MAX => Err(Error::TooLong),
            _ => Err(Error::Ended),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Nobody has waited for the child yet, so that the id is still its own even if it has ended. Tokio waits for it afterwards.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // All of them may have ended, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
