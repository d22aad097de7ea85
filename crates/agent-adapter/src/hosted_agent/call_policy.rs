//! What surrounds every call of a hosted agent: its circuit breaker, the provider's budget, and further tries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_domain::resilience::breaker::{Breaker, BreakerState, End, Pass, Rules};
use concord_domain::resilience::call_policy::next_retry;
use concord_runtime::Trace;
use concord_runtime::ports::Clock;
use concord_wire::{AgentId, ErrorCode, Timestamp};

use crate::hosted_agent::budget::Budget;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::spans::AnswerSpan;
use crate::hosted_agent::timing::Jitter;
use crate::metrics::{AdapterMetrics, standing};
use crate::settings::HostedAgent;

/// One call of an agent, which can be made several times.
pub(crate) trait Call: Sync {
    /// The answer.
    type Value: Send;

    /// Makes the call within so much time and in this trace. Returns the answer and, where it is known, how many tokens were used.
    fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<(Self::Value, Option<u64>), Failure>> + Send;
}

/// The call policy of one agent in this replica.
pub(crate) struct CallPolicy<C> {
    clock: C,
    agent_id: AgentId,
    breaker: Arc<Mutex<Breaker>>,
    budget: Option<Arc<Budget>>,
    metrics: AdapterMetrics,
    /// How long one try may take.
    timeout: Duration,
    tries_max: u32,
    jitter: Jitter,
}

/// The state of the breaker, as `concord agents` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BreakerSnapshot {
    pub(crate) standing: BreakerState,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) refuses_until: Option<Timestamp>,
}

/// The rules of an agent's breaker, by its settings.
pub(crate) fn breaker_rules(agent: &HostedAgent) -> Rules {
    let settings = &agent.breaker;
    Rules {
        failures_max: settings.failures_max,
        open_ms: settings.open_ms,
        open_max_ms: settings.open_max_ms,
        successes_min: settings.successes_min,
        // Longer than any try takes, so that a probe makes way only when its end was lost.
        probe_ms: agent.timeout_ms.saturating_mul(2),
    }
}

/// A call that the breaker has let pass. When it is dropped before its end, nothing is known of the agent, and the breaker
/// may let another probe pass.
struct Attempt<'a, C: Clock> {
    policy: &'a CallPolicy<C>,
    pass: Option<Pass>,
}

impl<C: Clock> Attempt<'_, C> {
    fn finish(mut self, end: End) {
        if let Some(pass) = self.pass.take() {
            self.policy.record_end(pass, end);
        }
    }
}

impl<C: Clock> Drop for Attempt<'_, C> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.policy.record_end(pass, End::Unknown);
        }
    }
}

fn locked(breaker: &Mutex<Breaker>) -> MutexGuard<'_, Breaker> {
    breaker.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Clock> CallPolicy<C> {
    pub(crate) fn new(
        clock: C,
        agent: &HostedAgent,
        rules: Rules,
        budget: Option<Arc<Budget>>,
        metrics: AdapterMetrics,
        jitter: Jitter,
    ) -> Self
    where
        C: Clone,
    {
        let breaker = Arc::new(Mutex::new(Breaker::new(rules)));
        let (shown, now) = (Arc::clone(&breaker), clock.clone());
        metrics.breakers.show(agent.agent_id.clone(), move || {
            standing(locked(&shown).state(now.now()))
        });
        Self {
            clock,
            agent_id: agent.agent_id.clone(),
            breaker,
            budget,
            metrics,
            timeout: Duration::from_millis(agent.timeout_ms),
            tries_max: agent.tries_max,
            jitter,
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        locked(&self.breaker)
    }

    pub(crate) fn snapshot(&self) -> BreakerSnapshot {
        let now = self.clock.now();
        let breaker = self.breaker();
        BreakerSnapshot {
            standing: breaker.state(now),
            failures: breaker.failures(),
            refuses_until: breaker.refuses_until(now),
        }
    }

    /// Fails at once where the breaker would refuse a call.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuses = self.breaker().refuses_until(self.clock.now());
        refuses.map_or(Ok(()), |until| Err(self.refused(until)))
    }

    /// Makes `call`, and makes it again where that is safe and there is time before `until`. `tokens` are taken from the
    /// provider's budget for each try.
    pub(crate) async fn run<K: Call>(
        &self,
        tokens: u64,
        until: Timestamp,
        call: &K,
        span: &AnswerSpan,
    ) -> Result<K::Value, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            let failure = match self.try_once(tokens, until, call, (span, tried)).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let pause = next_retry(failure.verdict.retry, tried, self.tries_max, failure.after);
            let Some(pause) = pause else {
                return Err(failure);
            };
            debug_assert!(
                tried < self.tries_max,
                "a call is made more often than tries_max allows"
            );
            let pause = pause.fixed + self.jitter.up_to(pause.jitter_max);
            if pause >= self.left_until(until) {
                return Err(failure);
            }
            tracing::debug!(agent = %self.agent_id, why = failure.why, "A call failed; it will be made again.");
            self.clock.sleep(pause).await;
        }
    }

    async fn try_once<K: Call>(
        &self,
        tokens: u64,
        until: Timestamp,
        call: &K,
        (span, tried): (&AnswerSpan, u32),
    ) -> Result<K::Value, Failure> {
        // Before the breaker lets it pass: the one probe of a half-open breaker must not wait for a budget.
        self.check()?;
        let charge = match &self.budget {
            Some(budget) => {
                let wait = span.budget();
                let taken = budget.take(tokens, self.left_until(until)).await;
                Some((budget, wait.finish("granted", taken)?))
            }
            None => None,
        };
        let pass = self
            .breaker()
            .pass(self.clock.now())
            .map_err(|until| self.refused(until))?;
        let attempt = Attempt {
            policy: self,
            pass: Some(pass),
        };
        let within = self.timeout.min(self.left_until(until));
        if within.is_zero() {
            self.count(EXPIRED);
            let why = "its time was over before it was asked";
            return Err(Failure::local(ErrorCode::Timeout, why).with_outcome(EXPIRED));
        }
        debug_assert!(within <= self.timeout, "a try takes longer than timeout_ms");
        let call_span = span.call(tried);
        let result = call.make(within, call_span.context()).await;
        let result = call_span.finish("answered", result);
        let (end, label) = match &result {
            Ok(_) => (End::Success, "answered"),
            Err(failure) => {
                let was_cut_short = within < self.timeout;
                (failure.verdict.end_within(was_cut_short), failure.outcome)
            }
        };
        attempt.finish(end);
        self.count(label);
        let (value, used) = result?;
        if let (Some((budget, charge)), Some(used)) = (charge, used) {
            budget.settle(charge, used);
        }
        Ok(value)
    }

    fn left_until(&self, until: Timestamp) -> Duration {
        Duration::from_millis(until.millis_since(self.clock.now()))
    }

    fn refused(&self, until: Timestamp) -> Failure {
        self.count(BREAKER_OPEN);
        let why = format!(
            "it failed again and again and is not asked until {until} (its circuit breaker is open)"
        );
        Failure::local(ErrorCode::AgentUnavailable, why).with_outcome(BREAKER_OPEN)
    }

    fn record_end(&self, pass: Pass, end: End) {
        let now = self.clock.now();
        let (before, after) = {
            let mut breaker = self.breaker();
            let before = breaker.state(now);
            breaker.ended(now, pass, end);
            (before, breaker.state(now))
        };
        if before != after {
            let (agent, standing) = (&self.agent_id, after.as_str());
            if after == BreakerState::Open {
                tracing::warn!(%agent, standing, "A hosted agent's circuit breaker has opened.");
            } else {
                tracing::info!(%agent, standing, "A hosted agent's circuit breaker has changed.");
            }
        }
    }

    /// Counts what became of a call, or why there was none.
    pub(crate) fn count(&self, result: &'static str) {
        self.metrics.count_call(&self.agent_id, result);
    }
}

/// The outcome of a call that the breaker refuses, in metrics and traces.
const BREAKER_OPEN: &str = "breaker_open";
/// The outcome of a message whose time was over before the agent was called for it.
pub(crate) const EXPIRED: &str = "expired";
