//! Events of agents: who is registered, and how they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, MessageId};
use concord_wire::payload::{AgentStatus, Card};

events! {
    /// What can happen to an agent.
    AgentEvent of Aggregate::Agent;
    Registered(AgentRegistered) = "registered", effects: true, deadlines: false,
        "An agent can be spoken to, or has another card than before.";
    Deregistered(AgentDeregistered) = "deregistered", effects: true, deadlines: false,
        "An agent is on the register no longer.";
    StatusChanged(AgentStatusChanged) = "status_changed", effects: true, deadlines: false,
        "An agent is available, busy or unavailable, other than before.";
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
