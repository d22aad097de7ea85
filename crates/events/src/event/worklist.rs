//! Events of a worklist: the tasks that one agent has, and those that wait for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::Priority;
use concord_wire::id::Token;

events! {
    /// What can happen to a worklist.
    WorklistEvent of Aggregate::Worklist;
    Taken(WorkTaken) = "taken", effects: false, deadlines: false,
        "The agent has room for the task, which it gets next.";
    Queued(WorkTaken) = "queued", effects: false, deadlines: false,
        "The agent has no room: the task waits.";
    Released(WorkReleased) = "released", effects: false, deadlines: false,
        "The agent has the task no longer, and may have room for one that waits.";
}

/// Contents of `taken` and `queued`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkTaken {
    /// The task.
    pub task_id: Token,
    /// Its priority.
    pub priority: Priority,
    /// How many tasks the agent works on at a time, as its card says; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// Contents of `released`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkReleased {
    /// The task.
    pub task_id: Token,
    /// Whether it was done; none where that counts neither for nor against the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// The task that has waited and is given to the agent now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Token>,
}
