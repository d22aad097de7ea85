//! The copies of one program: as many at once as messages are let in, started when needed, and started again after a
//! growing pause when they end or hang.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use concord_domain::resilience::call_policy::Trouble;
use concord_runtime::Trace;
use concord_runtime::delivery::ErrorChain;

use crate::hosted_agent::call_policy::Call;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::program::{Error, Program};
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
        Self {
            agent,
            idle: Mutex::default(),
            failures_in_a_row: AtomicU32::new(0),
            starts: AtomicU64::new(0),
        }
    }

    /// Copies that wait for work.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Program>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one copy answer one line. A copy whose answer is not `usable` is ended: it may have said something unasked, and its
    /// next line would be the answer to an earlier one.
    pub(crate) async fn ask(
        &self,
        line: &[u8],
        usable: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, Error> {
        let result = self.ask_one(line, usable).await;
        match &result {
            Ok(_) => self.failures_in_a_row.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
            }
        }
        result
    }

    /// A copy that waits for work, and has said nothing since it answered.
    fn quiet(&self) -> Option<Program> {
        loop {
            let mut program = self.idle().pop()?;
            if program.is_quiet() {
                return Some(program);
            }
            let agent = &self.agent.agent_id;
            tracing::warn!(%agent, "The program wrote a line to its standard output unasked, or ended; it is started again.");
        }
    }

    async fn ask_one(&self, line: &[u8], usable: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, Error> {
        let mut program = match self.quiet() {
            Some(program) => program,
            None => {
                self.pause().await;
                self.starts.fetch_add(1, Ordering::Relaxed);
                Program::start(&self.agent)?
            }
        };
        // A copy that failed is dropped, which ends it: its next line could be the answer to an earlier one.
        let answer = program
            .ask(line, Duration::from_millis(self.agent.timeout_ms))
            .await?;
        if usable(&answer) && program.is_quiet() {
            self.idle().push(program);
        }
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
pub(crate) struct OfProgram<'a, U> {
    pub(crate) pool: &'a Pool,
    pub(crate) line: &'a [u8],
    /// Whether an answer can be used.
    pub(crate) usable: U,
}

impl<U: Fn(&[u8]) -> bool + Sync> Call for OfProgram<'_, U> {
    type Value = Vec<u8>;

    async fn make(
        &self,
        _within: Duration,
        _trace: Option<&Trace>,
    ) -> Result<(Vec<u8>, Option<u64>), Failure> {
        let failed = |trouble, why: String| Failure::of(trouble, false, why);
        match self.pool.ask(self.line, &self.usable).await {
            Ok(line) => Ok((line, None)),
            Err(error @ Error::Timeout(_)) => Err(failed(Trouble::ProgramLate, error.to_string())),
            Err(error) => Err(failed(
                Trouble::ProgramEnded,
                ErrorChain(&error).to_string(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(script: &str) -> Pool {
        let settings = json!({ "agent_id": "ann", "command": ["sh", "-c", script] });
        Pool::new(serde_json::from_value(settings).unwrap())
    }

    async fn answers(pool: &Pool) -> Vec<String> {
        let mut answers = Vec::new();
        for line in ["a", "b", "c", "d"] {
            let answer = pool
                .ask(line.as_bytes(), |answer| answer == line.as_bytes())
                .await
                .unwrap();
            answers.push(String::from_utf8(answer).unwrap());
        }
        answers
    }

    #[tokio::test]
    async fn one_copy_answers_line_by_line() {
        let pool = pool("while read -r line; do echo $line; done");
        assert_eq!(answers(&pool).await, ["a", "b", "c", "d"]);
        assert_eq!(
            (pool.starts.load(Ordering::Relaxed), pool.idle_count()),
            (1, 1)
        );
    }

    #[tokio::test]
    async fn nobody_is_given_the_answer_to_another_whatever_a_program_says_unasked() {
        let before = pool("echo ready; while read -r line; do echo $line; done");
        assert_eq!(answers(&before).await, ["ready"; 4]);
        assert_eq!(
            (before.starts.load(Ordering::Relaxed), before.idle_count()),
            (4, 0)
        );
        let after = pool("while read -r line; do echo $line; echo thanks; done");
        for (asked, answer) in ["a", "b", "c", "d"].iter().zip(answers(&after).await) {
            assert!([*asked, "thanks"].contains(&&*answer), "{asked}: {answer}");
        }
    }

    #[tokio::test]
    async fn what_a_program_writes_to_its_standard_error_is_read_to_the_end() {
        // Neither text nor a line, and far more than a pipe holds.
        let noisy = pool(
            "head -c 300000 /dev/zero | tr '\\000' '\\377' >&2; while read -r line; do echo $line; done",
        );
        assert_eq!(answers(&noisy).await, ["a", "b", "c", "d"]);
    }
}
