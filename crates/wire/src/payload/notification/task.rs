//! Notifications about tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{AgentId, MessageId, Token};

/// The data of `task_completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCompleted {
    /// The task.
    pub task_id: Token,
    /// `message_id` of the request that opened it.
    pub request_id: MessageId,
    /// Its strategy.
    pub strategy: String,
    /// The result, in the form that the strategy gives.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    pub result: Value,
    /// Whose work it is.
    pub by: Vec<AgentId>,
    /// Whether something is missing, because time ran out.
    pub partial: bool,
}

/// The data of `task_withdrawn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskWithdrawn {
    /// The task.
    pub task_id: Token,
    /// Why, in words.
    pub why: String,
}

/// The data of `bid_rejected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BidRejected {
    /// The task.
    pub task_id: Token,
    /// Whether the bid is awarded after all should the winner fail.
    pub in_reserve: bool,
}

/// The data of `task_handed_on`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskHandedOn {
    /// The task.
    pub task_id: Token,
    /// Who had it.
    pub from: AgentId,
    /// Who has it now.
    pub to: AgentId,
    /// Why.
    pub reason: String,
    /// What was given with it.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub context: Value,
}
