//! The copies of one program. There are as many at once as messages are let in. They are started when needed, and after a
//! growing pause when they end or hang.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use concord_domain::resilience::call_policy::CallFailure;
use concord_runtime::delivery::ErrorChain;
use prometheus_client::metrics::counter::Counter;

use crate::hosted_agent::agent_caller::{AgentReply, Copies};
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
    /// How often a copy was started, as [`Copies`] says it.
    starts: AtomicU64,
    /// The same count in the metrics.
    started: Counter,
}

impl Pool {
    pub(crate) fn new(agent: HostedAgent, started: Counter) -> Self {
        Self {
            started,
            agent,
            idle: Mutex::default(),
            failures_in_a_row: AtomicU32::new(0),
            starts: AtomicU64::new(0),
        }
    }

    pub(crate) fn copies(&self) -> Copies {
        Copies {
            idle: self.idle().len(),
            starts: self.starts.load(Ordering::Relaxed),
        }
    }

    /// Gives one copy a line and returns its answer.
    pub(crate) async fn call(
        &self,
        line: &[u8],
        is_usable: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<AgentReply, Failure> {
        let failed = |trouble, why: String| Failure::of_call(trouble, false, why);
        match self.ask(line, is_usable).await {
            Ok(line) => Ok(AgentReply {
                status: 200,
                dialect: None,
                body: line.into(),
            }),
            Err(error @ Error::Timeout(_)) => {
                Err(failed(CallFailure::ProgramLate, error.to_string()))
            }
            Err(error @ Error::TooLong) => Err(failed(CallFailure::TooLong, error.to_string())),
            Err(error) => Err(failed(
                CallFailure::ProgramEnded,
                ErrorChain(&error).to_string(),
            )),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Program>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one copy answer one line. A copy whose answer cannot be used is ended: it may have written a line unasked, and its
    /// next line would be the answer to an earlier message.
    async fn ask(
        &self,
        line: &[u8],
        is_usable: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Vec<u8>, Error> {
        let result = self.ask_one(line, is_usable).await;
        match &result {
            Ok(_) => self.failures_in_a_row.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
            }
        }
        result
    }

    /// A copy that waits for work and has written nothing since it answered.
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

    async fn ask_one(
        &self,
        line: &[u8],
        is_usable: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Vec<u8>, Error> {
        let mut program = match self.quiet() {
            Some(program) => program,
            None => {
                self.pause().await;
                self.starts.fetch_add(1, Ordering::Relaxed);
                self.started.inc();
                Program::start(&self.agent)?
            }
        };
        // A copy that failed is dropped, which ends it: its next line could be the answer to an earlier one.
        let answer = program
            .ask(line, Duration::from_millis(self.agent.timeout_ms))
            .await?;
        if is_usable(&answer) && program.is_quiet() {
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

#[cfg(test)]
mod tests {
    use concord_wire::ErrorCode;
    use rustix::process::{Pid, test_kill_process};
    use serde_json::json;

    use super::*;

    fn pool(script: &str) -> Pool {
        let settings = json!({ "agent_id": "ann", "command": ["sh", "-c", script] });
        Pool::new(
            serde_json::from_value(settings).unwrap(),
            Counter::default(),
        )
    }

    async fn answers(pool: &Pool) -> Vec<String> {
        let mut answers = Vec::new();
        for line in ["a", "b", "c", "d"] {
            let answer = pool
                .ask(line.as_bytes(), &|answer| answer == line.as_bytes())
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
        assert_eq!(pool.copies(), Copies { starts: 1, idle: 1 });
    }

    #[tokio::test]
    async fn nobody_is_given_the_answer_to_another_whatever_a_program_says_unasked() {
        let before = pool("echo ready; while read -r line; do echo $line; done");
        assert_eq!(answers(&before).await, ["ready"; 4]);
        assert_eq!(before.copies(), Copies { starts: 4, idle: 0 });
        let after = pool("while read -r line; do echo $line; echo thanks; done");
        for (asked, answer) in ["a", "b", "c", "d"].iter().zip(answers(&after).await) {
            assert!([*asked, "thanks"].contains(&&*answer), "{asked}: {answer}");
        }
    }

    /// A program that starts another one before it goes on, and the file where it writes the ids of both.
    fn hanging(then: &str, timeout_ms: u64) -> (Pool, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let script = format!("sleep 1000 & echo $$ $! > '{path}'; {then}");
        let mut pool = pool(&script);
        pool.agent.timeout_ms = timeout_ms;
        (pool, file)
    }

    async fn within_seconds<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..500 {
            if let Some(seen) = look() {
                return Some(seen);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        None
    }

    async fn started(file: &tempfile::NamedTempFile) -> Vec<Pid> {
        let written = || std::fs::read_to_string(file.path()).unwrap();
        let ids = || written().ends_with('\n').then(written);
        let ids = within_seconds(ids).await.unwrap();
        let ids = ids.split_whitespace().map(|id| id.parse().unwrap());
        ids.map(|id| Pid::from_raw(id).unwrap()).collect()
    }

    /// Whether none of them is there any more: the program itself not even as one that nobody has waited for. What it has started is for
    /// the first process of the machine to wait for, which not each does.
    async fn all_are_gone(ids: Vec<Pid>) -> bool {
        let has_ended = |id: &Pid| {
            let status = format!("/proc/{}/status", id.as_raw_nonzero());
            std::fs::read_to_string(status).is_ok_and(|status| status.contains("\nState:\tZ"))
        };
        let is_gone = |id: &Pid| test_kill_process(*id).is_err();
        let (program, started) = ids.split_first().unwrap();
        let are_gone = || is_gone(program) && started.iter().all(|id| is_gone(id) || has_ended(id));
        let gone = || are_gone().then_some(());
        within_seconds(gone).await.is_some()
    }

    #[tokio::test]
    async fn whatever_a_program_has_started_ends_with_it() {
        let (late, file) = hanging("wait", 3_000);
        let answer = late.ask(b"a", &|_| true).await;
        assert!(matches!(answer, Err(Error::Timeout(_))), "{answer:?}");
        assert!(all_are_gone(started(&file).await).await, "it was late");

        let (stopped, file) = hanging("wait", 60_000);
        let ids = tokio::select! {
            answer = stopped.ask(b"a", &|_| true) => panic!("{answer:?}"),
            ids = started(&file) => ids,
        };
        assert!(all_are_gone(ids).await, "nobody waits for it any more");

        let (answers, file) = hanging("read line; echo $line; wait", 60_000);
        assert_eq!(answers.ask(b"a", &|_| true).await.unwrap(), b"a");
        let ids = started(&file).await;
        drop(answers);
        assert!(all_are_gone(ids).await, "the adapter stops");
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_too_large() {
        let endless = pool("read line; head -c 1100000 /dev/zero | tr '\\000' a; cat");
        let Err(failure) = endless.call(b"a\n", &|_| true).await else {
            panic!("it has an end")
        };
        assert_eq!(failure.verdict.code, ErrorCode::CapacityExceeded);
        let advice = failure.suggestions().concat();
        assert!(advice.contains("Ask for less"), "{advice}");
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
