//! Events of agents: who is registered, and how they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, MessageId, Token};
use concord_wire::payload::{AgentStatus, Card};
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to an agent.
    AgentEvent of Aggregate::Agent;
    Registered(AgentRegistered) = "registered", effects: true, deadlines: false,
        "An agent can be spoken to, or has another card than before.";
    Deregistered(AgentDeregistered) = "deregistered", effects: true, deadlines: false,
        "An agent is on the register no longer.";
    StatusChanged(AgentStatusChanged) = "status_changed", effects: true, deadlines: false,
        "An agent is available, busy or unavailable, other than before.";
    Silent(AgentSilent) = "silent", effects: true, deadlines: false,
        "An agent has let a request or a task pass without an answer; after too many in a row it is unavailable for a while.";
    Answered(AgentAnswered) = "answered", effects: true, deadlines: false,
        "An agent that had been silent has answered; it is available again if it was not for its silence.";
    Retried(AgentRetried) = "retried", effects: true, deadlines: false,
        "An agent that was silent too often is tried again.";
}

/// In less time, in milliseconds, nobody can be asked to do or to answer anything: whoever asks would make others unreliable by it.
pub const ANSWER_MS_MIN: u64 = 5_000;

/// When an agent that does not answer is not asked any more, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SilenceBounds {
    /// How many requests and tasks in a row an agent may let pass without an answer before it is unavailable; 0 for no limit.
    pub silent_max: u32,
    /// How long it stays unavailable the first time, in milliseconds. Doubled each time in a row that it does not answer when it is
    /// tried again.
    pub open_ms: u64,
    /// How long it stays unavailable at most, in milliseconds.
    pub open_max_ms: u64,
    /// A request or a task that leaves an agent less time to answer, in milliseconds, says nothing about it: whoever asks could make it unavailable.
    pub answer_ms_min: u64,
}

impl Default for SilenceBounds {
    fn default() -> Self {
        Self {
            silent_max: 5,
            open_ms: 30_000,
            open_max_ms: 600_000,
            answer_ms_min: ANSWER_MS_MIN,
        }
    }
}

/// Contents of `silent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSilent {
    /// The agent.
    pub agent_id: AgentId,
    /// The request or task that has passed.
    pub about: Token,
    /// How many in a row, with this one.
    pub in_a_row: u32,
    /// The agent whose request it was; none where a service has asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AgentId>,
    /// The time at which it is tried again, where it is unavailable with this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Why it is unavailable, where it is; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Contents of `answered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAnswered {
    /// The agent.
    pub agent_id: AgentId,
    /// Whether it was unavailable for its silence, and is available now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub available: bool,
}

/// Contents of `retried`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRetried {
    /// The agent.
    pub agent_id: AgentId,
    /// Why it is available.
    pub why: String,
}

/// The change that a registration made.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CardChange {
    /// The agent was not registered before.
    Joined,
    /// It had another card.
    Updated,
    /// Nothing; it is told that it is registered.
    Same,
}

/// Contents of `registered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRegistered {
    /// The card, in place of an earlier one.
    pub card: Card,
    /// The change.
    pub change: CardChange,
    /// The agent itself, or the operator who registered it.
    pub by: AgentId,
    /// The request that is answered, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<MessageId>,
}

/// Contents of `deregistered`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentDeregistered {
    /// The agent.
    pub agent_id: AgentId,
    /// The agent itself, or the operator who took it off the register.
    pub by: AgentId,
    /// The reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The request that is answered, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<MessageId>,
}

/// Contents of `status_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatusChanged {
    /// The agent.
    pub agent_id: AgentId,
    /// Its status now.
    pub status: AgentStatus,
    /// The reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
