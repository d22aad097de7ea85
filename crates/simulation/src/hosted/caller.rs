//! The endpoint of the hosted agent, as the adapter calls it: a program, a server or a model that fails in all the ways in
//! which such things fail.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_agent_adapter::hosted_agent::{AgentCall, AgentCaller, AgentReply, Failure};
use concord_domain::resilience::breaker::End;
use concord_domain::resilience::call_policy::{Retry, classify};
use serde_json::json;

use super::setup::{Kind, Outcome, Setup};
use super::world::{Action, Cell, Reply, Shared, What};
use crate::executor::Incarnation;
use crate::faults::InjectedBug;
use crate::oneshot::Answer;

/// The end of the key of a call that asks a model for a better reply.
const SECOND_ASKING: &str = "-again";

/// Calls the endpoint of this world.
pub(crate) struct SimCaller {
    pub(crate) incarnation: Incarnation,
    pub(crate) world: Shared,
    pub(crate) setup: Arc<Setup>,
}

impl AgentCaller for SimCaller {
    async fn call(&self, call: AgentCall<'_>) -> Result<AgentReply, Failure> {
        let part = u8::from(call.idempotency_key.ends_with(SECOND_ASKING));
        let within = u64::try_from(call.within.as_millis()).unwrap_or(u64::MAX);
        let cell = Cell::default();
        let number = {
            let mut world = self.world.lock();
            let number = world.call(self.incarnation, part, &cell);
            // A program is given its whole time: one that is interrupted must be started again.
            let patience = if self.setup.kind == Kind::Program {
                self.setup.timeout_ms
            } else {
                within
            };
            world.may_crash(self.incarnation, patience);
            world.plan(patience, Action::GiveUp(cell.clone()));
            number
        };
        let (outcome, after) = match Answer(cell).await {
            Some(Reply::Called(outcome, after)) => (outcome, after),
            _ => {
                let connected = self.world.lock().abandon(number);
                (Outcome::NoEnd { connected }, None)
            }
        };
        let end = self.expected_end(outcome, within);
        self.world
            .lock()
            .record_end(self.incarnation, number, outcome, end);
        self.reply(outcome, after)
    }
}

impl SimCaller {
    /// What the breaker must be told of a call, by the documentation of failures.
    fn expected_end(&self, outcome: Outcome, within: u64) -> End {
        match outcome.read(self.setup.kind) {
            Ok(_) => End::Success,
            Err(trouble) => {
                let was_cut_short = within < self.setup.timeout_ms;
                classify(trouble, self.setup.idempotent).end_within(was_cut_short)
            }
        }
    }

    /// The answer of the endpoint as the adapter reads it.
    fn reply(&self, outcome: Outcome, after: Option<u64>) -> Result<AgentReply, Failure> {
        let body = match outcome {
            Outcome::Said => self.written(r#"{"text":"Yes."}"#),
            Outcome::Rambled => self.written("I think so, but who knows?"),
            Outcome::Garbage => Bytes::from_static(b"<html>Welcome!</html>"),
            Outcome::Unreachable | Outcome::Cut | Outcome::Status(_) | Outcome::NoEnd { .. } => {
                Bytes::new()
            }
        };
        let Some(trouble) = outcome.transport_failure(self.setup.kind) else {
            return Ok(AgentReply {
                status: 200,
                dialect: None,
                body,
            });
        };
        let mut failure = Failure::of_call(trouble, self.setup.idempotent, format!("{outcome:?}"));
        failure.after = after.map(Duration::from_millis);
        if self.world.lock().injected_bug == Some(InjectedBug::UnsafeRetry) {
            failure.verdict.retry = Retry::Safe;
        }
        Err(failure)
    }

    /// An answer in the form that this kind of agent gives it in.
    fn written(&self, text: &str) -> Bytes {
        let answer = match self.setup.kind {
            Kind::Model => json!({ "choices": [{ "message": { "content": text } }] }),
            Kind::Program | Kind::Server => {
                let payload =
                    json!({ "status": "success", "result": {}, "errors": [], "warnings": [] });
                json!({ "message_type": "response", "payload": payload })
            }
        };
        Bytes::from(answer.to_string())
    }
}

/// The record of what an adapter did holds when the calls of its agent ended.
impl super::world::World {
    fn record_end(&mut self, incarnation: Incarnation, number: u64, outcome: Outcome, end: End) {
        if let Some(call) = self.calls.get_mut(&number) {
            debug_assert!(call.outcome.is_none(), "call {number} ends twice");
            call.outcome = Some(outcome);
        }
        self.keep(incarnation, What::Ended { call: number, end });
    }
}
