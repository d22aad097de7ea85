//! The state of a hosted agent, for people.

use concord_runtime::Ports;
use concord_wire::Timestamp;
use concord_wire::payload::Card;
use serde::Serialize;

use super::Host;
use crate::hosted_agent::agent_caller::AgentCaller;

/// A hosted agent, as `concord agents` shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Description {
    #[serde(flatten)]
    card: Card,
    kind: &'static str,
    instances: usize,
    working: usize,
    waiting: usize,
    breaker: &'static str,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    refuses_until: Option<Timestamp>,
    /// Copies of a program that wait for work. None for other agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<usize>,
    /// How often a copy of a program was started. None for other agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
}

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// Describes the agent as it is in this replica.
    pub(crate) fn describe(&self) -> Description {
        let (working, waiting) = self.limit.load();
        let breaker = self.policy.snapshot();
        let copies = self.caller.copies();
        Description {
            card: self.agent.card(),
            kind: self.runner.as_str(),
            instances: self.agent.instances,
            working,
            waiting,
            breaker: breaker.standing.as_str(),
            failures: breaker.failures,
            refuses_until: breaker.refuses_until,
            idle: copies.map(|copies| copies.idle),
            starts: copies.map(|copies| copies.starts),
            provider: self.agent.provider.as_ref().map(ToString::to_string),
        }
    }

    /// The state of the agent's breaker in this replica.
    pub fn breaker(&self) -> concord_domain::resilience::breaker::BreakerState {
        self.policy.snapshot().standing
    }
}
