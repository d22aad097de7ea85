//! What stands around every try of a hosted agent: its circuit breaker, the provider's budget, and when to try again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_domain::resilience::breaker::{Breaker, End, Pass, Rules, Standing};
use concord_domain::resilience::call_policy::next_try;
use concord_runtime::service::metrics::{AgentLabel, CallLabels, Metrics};
use concord_runtime::{Trace, service::clock};
use concord_wire::{AgentId, ErrorCode, Timestamp};
use tokio::time::Instant;

use crate::hosted_agent::budget::Budget;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::jitter::jitter;
use crate::hosted_agent::spans::Turn;
use crate::settings::HostedAgent;

/// One call of an agent, which can be made several times.
pub(crate) trait Call: Sync {
    /// What it gives.
    type Value: Send;

    /// Makes it, within so much time and in this trace; says what came of it, and how many tokens were used where that is
    /// known.
    fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<(Self::Value, Option<u64>), Failure>> + Send;
}

/// The guard of one agent.
pub(crate) struct Guard {
    agent_id: AgentId,
    breaker: Mutex<Breaker>,
    budget: Option<Arc<Budget>>,
    metrics: Metrics,
    timeout: Duration,
    tries_max: u32,
}

/// How an agent stands, as `concord agents` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) standing: Standing,
    pub(crate) failures: u32,
    pub(crate) refuses_until: Option<Timestamp>,
}

/// A try under way. When it is given up, nothing is known of the agent, and another may be tried.
struct Try<'a> {
    guard: &'a Guard,
    pass: Option<Pass>,
}

impl Try<'_> {
    fn ended(mut self, end: End) {
        if let Some(pass) = self.pass.take() {
            self.guard.ended(pass, end);
        }
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.guard.ended(pass, End::Unknown);
        }
    }
}

impl Guard {
    pub(crate) fn new(agent: &HostedAgent, budget: Option<Arc<Budget>>, metrics: Metrics) -> Self {
        let settings = &agent.breaker;
        let rules = Rules {
            failures_max: settings.failures_max,
            open_ms: settings.open_ms,
            open_max_ms: settings.open_max_ms,
            successes_min: settings.successes_min,
            probe_ms: agent.timeout_ms.saturating_mul(2),
        };
        let guard = Self {
            agent_id: agent.agent_id.clone(),
            breaker: Mutex::new(Breaker::new(rules)),
            budget,
            metrics,
            timeout: Duration::from_millis(agent.timeout_ms),
            tries_max: agent.tries_max,
        };
        guard.show();
        guard
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stands(&self) -> Stands {
        let (now, breaker) = (clock::now(), self.breaker());
        Stands {
            standing: breaker.standing(now),
            failures: breaker.failures(),
            refuses_until: breaker.refuses_until(now),
        }
    }

    /// Refuses at once what the breaker would refuse anyway.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuses = self.breaker().refuses_until(clock::now());
        refuses.map_or(Ok(()), |until| Err(self.refused(until)))
    }

    /// Has `call` made, and made again where that is safe, until the time is over.
    pub(crate) async fn run<C: Call>(
        &self,
        tokens: u64,
        until: Instant,
        call: &C,
        turn: &Turn,
    ) -> Result<C::Value, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            let failure = match self.once(tokens, until, call, (turn, tried)).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let pause = next_try(failure.verdict.again, tried, self.tries_max, failure.after);
            let Some(pause) = pause.map(|pause| pause.fixed + jitter(pause.jitter_max)) else {
                return Err(failure);
            };
            if Instant::now() + pause >= until {
                return Err(failure);
            }
            tracing::debug!(agent = %self.agent_id, why = failure.why, "A call failed; it will be made again.");
            tokio::time::sleep(pause).await;
        }
    }

    async fn once<C: Call>(
        &self,
        tokens: u64,
        until: Instant,
        call: &C,
        (turn, tried): (&Turn, u32),
    ) -> Result<C::Value, Failure> {
        // Before the breaker is asked to let it pass: the one try of a half-open breaker must not wait for a budget.
        self.check()?;
        let charge = match &self.budget {
            Some(budget) => {
                let wait = turn.budget();
                Some((
                    budget,
                    wait.ended("granted", budget.take(tokens, until).await)?,
                ))
            }
            None => None,
        };
        let pass = self
            .breaker()
            .pass(clock::now())
            .map_err(|until| self.refused(until))?;
        self.show();
        let under_way = Try {
            guard: self,
            pass: Some(pass),
        };
        let within = self
            .timeout
            .min(until.saturating_duration_since(Instant::now()));
        if within.is_zero() {
            return Err(Failure::here(
                ErrorCode::Timeout,
                "its time was over before it was asked",
            ));
        }
        let part = turn.call(tried);
        let result = call.make(within, part.context()).await;
        let result = part.ended("answered", result);
        let (end, label) = match &result {
            Ok(_) => (End::Success, "answered"),
            Err(failure) => (
                failure.verdict.end_within(within < self.timeout),
                failure.outcome,
            ),
        };
        under_way.ended(end);
        self.count(label);
        let (value, used) = result?;
        if let (Some((budget, charge)), Some(used)) = (charge, used) {
            budget.settle(charge, used);
        }
        Ok(value)
    }

    fn refused(&self, until: Timestamp) -> Failure {
        self.count("breaker_open");
        let why = format!(
            "it failed again and again and is not asked until {until} (its circuit breaker is open)"
        );
        Failure::here(ErrorCode::AgentUnavailable, why).named("breaker_open")
    }

    fn ended(&self, pass: Pass, end: End) {
        let now = clock::now();
        let (before, after) = {
            let mut breaker = self.breaker();
            let before = breaker.standing(now);
            breaker.ended(now, pass, end);
            (before, breaker.standing(now))
        };
        if before != after {
            let (agent, standing) = (&self.agent_id, after.as_str());
            match after {
                Standing::Open => {
                    tracing::warn!(%agent, standing, "A hosted agent's circuit breaker has opened.")
                }
                _ => {
                    tracing::info!(%agent, standing, "A hosted agent's circuit breaker has changed.")
                }
            }
        }
        self.show();
    }

    fn show(&self) {
        let standing = match self.breaker().standing(clock::now()) {
            Standing::Closed => 0,
            Standing::HalfOpen => 1,
            Standing::Open => 2,
        };
        let label = AgentLabel {
            agent: self.agent_id.to_string(),
        };
        self.metrics
            .breaker_standing
            .get_or_create(&label)
            .set(standing);
    }

    fn count(&self, result: &'static str) {
        let labels = CallLabels {
            agent: self.agent_id.to_string(),
            result,
        };
        self.metrics.hosted_calls.get_or_create(&labels).inc();
    }
}
