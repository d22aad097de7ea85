//! Events of a rotation: whose turn it was among those who fit the same criteria.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, Token};

events! {
    /// What can happen to a rotation.
    RotationEvent of Aggregate::Rotation;
    Turned(Turned) = "turned", effects: false, deadlines: false,
        "It is an agent's turn: a task is offered to it first.";
}

/// Contents of `turned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turned {
    /// The task.
    pub task_id: Token,
    /// The agent.
    pub agent: AgentId,
}
