//! The copies of one program: as many at once as messages are let in, started when needed, and started again after a
//! growing pause when they end or hang.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use concord_domain::hosted::Trouble;
use concord_runtime::Trace;
use concord_runtime::consume::Chain;

use crate::failure::Failure;
use crate::guard::Call;
use crate::program::{Error, Program};
use crate::settings::HostedAgent;

/// Pause before the first new start, doubled with each failure in a row.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The copies of one program.
pub(crate) struct Pool {
    agent: HostedAgent,
    idle: Mutex<Vec<Program>>,
    failures_in_a_row: AtomicU32,
    /// How often a copy was started.
    pub(crate) starts: AtomicU64,
}

impl Pool {
    pub(crate) fn new(agent: HostedAgent) -> Self {
        Self { agent, idle: Mutex::default(), failures_in_a_row: AtomicU32::new(0), starts: AtomicU64::new(0) }
    }

    /// Copies that wait for work.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Program>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one copy answer one line.
    pub(crate) async fn ask(&self, line: &[u8]) -> Result<Vec<u8>, Error> {
        let result = self.ask_one(line).await;
        match &result {
            Ok(_) => self.failures_in_a_row.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
            }
        }
        result
    }

    async fn ask_one(&self, line: &[u8]) -> Result<Vec<u8>, Error> {
        let idle = self.idle().pop();
        let mut program = match idle {
            Some(program) => program,
            None => {
                self.pause().await;
                self.starts.fetch_add(1, Ordering::Relaxed);
                Program::start(&self.agent)?
            }
        };
        // A copy that failed is dropped, which ends it: its next line could be the answer to an earlier one.
        let answer = program.ask(line, Duration::from_millis(self.agent.timeout_ms)).await?;
        self.idle().push(program);
        Ok(answer)
    }

    async fn pause(&self) {
        let failures = self.failures_in_a_row.load(Ordering::Relaxed);
        if failures > 0 {
            let pause = PAUSE_FIRST * 2_u32.saturating_pow(failures.min(10) - 1);
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
    }
}

/// A line on its way to a program, which has a time of its own: one that is interrupted must be started again.
pub(crate) struct OfProgram<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) line: &'a [u8],
}

impl Call for OfProgram<'_> {
    type Value = Vec<u8>;

    async fn make(&self, _within: Duration, _trace: Option<&Trace>) -> Result<(Vec<u8>, Option<u64>), Failure> {
        let failed = |trouble, why: String| Failure::of(trouble, false, why);
        match self.pool.ask(self.line).await {
            Ok(line) => Ok((line, None)),
            Err(error @ Error::Timeout(_)) => Err(failed(Trouble::ProgramLate, error.to_string())),
            Err(error) => Err(failed(Trouble::ProgramEnded, Chain(&error).to_string())),
        }
    }
}
