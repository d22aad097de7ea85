//! Programs beside an installation that print `ready` when they listen.

use std::time::{Duration, Instant};

use anyhow::bail;
use concord_installation::{Process, Program};

/// The time in which a program must listen.
const READY_MAX: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Starts a program.
pub(super) fn start(program: Program) -> anyhow::Result<Process> {
    let process = Process::new(program);
    process.start()?;
    Ok(process)
}

/// Waits until it has printed `ready`.
pub(super) async fn ready(process: &Process) -> anyhow::Result<()> {
    let begun = Instant::now();
    let Program { name, log, .. } = &process.program;
    while !std::fs::read_to_string(log)?
        .lines()
        .any(|line| line == "ready")
    {
        if let Some(status) = process.ended() {
            bail!(
                "{name} has ended ({status}); the end of its log:\n{}",
                process.tail()
            );
        }
        if begun.elapsed() > READY_MAX {
            bail!(
                "{name} does not listen; the end of its log:\n{}",
                process.tail()
            );
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}
