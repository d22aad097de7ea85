//! What stands around every call of the agent, in the order of the adapter's own `guard.rs`: the breaker, and when the call
//! is made again.

use std::time::Duration;

use concord_domain::resilience::breaker::{End, Pass};
use concord_domain::resilience::call_policy::{classify, next_retry};
use concord_wire::ErrorCode;

use super::injected_bugs::bent;
use super::process::{Failure, Process};
use super::setup::{Kind, Outcome};
use super::world::{Cause, Cell, Delivery, Happening, Reply, What};
use crate::faults::Plant;
use crate::oneshot::Answer;

impl Process {
    /// Refuses at once what the breaker would refuse anyway.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let (plant, now) = self.world.lock().plant_and_clock();
        let breaker = self.breaker();
        let passes =
            bent(plant, breaker.state(now)).unwrap_or_else(|| breaker.refuses_until(now).is_none());
        if passes { Ok(()) } else { Err(self.refused()) }
    }

    fn refused(&self) -> Failure {
        self.world.lock().keep(self.life, What::Refused);
        Failure::here(ErrorCode::AgentUnavailable, Cause::Broken)
    }

    /// Has a call made, and made again where that is safe, until the time is over.
    pub(super) async fn run(
        &self,
        delivery: &Delivery,
        part: u8,
        until: u64,
    ) -> Result<Outcome, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            let failure = match self.once(delivery, part, until).await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            let pause = next_retry(
                failure.verdict.retry,
                tried,
                self.setup.tries_max,
                failure.after,
            );
            let Some(pause) = pause else {
                return Err(failure);
            };
            let (fixed, jitter_max) = (millis(pause.fixed), millis(pause.jitter_max));
            let pause = fixed + self.world.lock().random.between(0, jitter_max);
            if self.now() + pause >= until {
                return Err(failure);
            }
            self.world.lock().hosted().retries += 1;
            self.sleep(pause).await;
        }
    }

    async fn once(&self, delivery: &Delivery, part: u8, until: u64) -> Result<Outcome, Failure> {
        self.check()?;
        let pass = self.pass()?;
        let within = self.setup.timeout_ms.min(until.saturating_sub(self.now()));
        if within == 0 {
            self.ended(pass, End::Unknown);
            return Err(Failure::here(ErrorCode::Timeout, Cause::Late));
        }
        let (call, outcome, after) = self.make(delivery, part, within).await;
        let read = outcome
            .read(self.setup.kind)
            .map_err(|trouble| classify(trouble, self.setup.idempotent));
        let end = match &read {
            Ok(_) => End::Success,
            Err(verdict) => verdict.end_within(within < self.setup.timeout_ms),
        };
        self.world.lock().keep(self.life, What::Ended { call, end });
        self.ended(pass, end);
        read.map_err(|mut verdict| {
            if self.world.lock().plant == Some(Plant::UnsafeRetry) {
                verdict.retry = concord_domain::resilience::call_policy::Retry::Safe;
            }
            Failure {
                verdict,
                cause: Cause::Called(outcome),
                after: after.map(Duration::from_millis),
            }
        })
    }

    /// None when a planted bug lets a call pass that the breaker knows nothing of.
    fn pass(&self) -> Result<Option<Pass>, Failure> {
        let (plant, now) = self.world.lock().plant_and_clock();
        let mut breaker = self.breaker();
        match bent(plant, breaker.state(now)) {
            Some(true) => Ok(breaker.pass(now).ok()),
            Some(false) => Err(self.refused()),
            None => breaker.pass(now).map(Some).map_err(|_| self.refused()),
        }
    }

    fn ended(&self, pass: Option<Pass>, end: End) {
        let now = self.world.lock().clock();
        if let Some(pass) = pass {
            self.breaker().ended(now, pass, end);
        }
    }

    /// Makes one call: which it was, what came of it, and how long the endpoint asks to be left alone.
    async fn make(
        &self,
        delivery: &Delivery,
        part: u8,
        within: u64,
    ) -> (u64, Outcome, Option<u64>) {
        let cell = Cell::default();
        let call = {
            let mut world = self.world.lock();
            let call = world.call(self.life, delivery, part, &cell);
            // A program is given its whole time: one that is interrupted must be started again.
            let patience = if self.setup.kind == Kind::Program {
                self.setup.timeout_ms
            } else {
                within
            };
            world.may_crash(self.life, patience);
            world.plan(patience, Happening::GiveUp(cell.clone()));
            call
        };
        match Answer(cell).await {
            Some(Reply::Called(outcome, after)) => (call, outcome, after),
            _ => (
                call,
                Outcome::NoEnd {
                    connected: self.world.lock().abandon(call),
                },
                None,
            ),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
