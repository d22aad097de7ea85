//! How a hosted agent stands, for people.

use std::sync::atomic::Ordering;

use concord_wire::Timestamp;
use concord_wire::payload::Card;
use serde::Serialize;

use super::{Host, Runner};
use crate::hosted_agent::pool::Pool;

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
    /// Of a program: copies that wait for work, and how often one was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
}

impl Host {
    /// How it stands in this replica.
    pub(crate) fn describe(&self) -> Description {
        let (working, waiting) = self.gate.load();
        let stands = self.guard.stands();
        let pool = match &self.runner {
            Runner::Program(pool) => Some(&**pool),
            Runner::Http(_) | Runner::OpenAi(_) => None,
        };
        Description {
            card: self.agent.card(),
            kind: self.runner.as_str(),
            instances: self.agent.instances,
            working,
            waiting,
            breaker: stands.standing.as_str(),
            failures: stands.failures,
            refuses_until: stands.refuses_until,
            idle: pool.map(Pool::idle_count),
            starts: pool.map(|pool| pool.starts.load(Ordering::Relaxed)),
            provider: self.agent.provider.as_ref().map(ToString::to_string),
        }
    }
}
