//! The JSON of the question that an agent gets in a debate.

use serde::Deserialize;
use serde_json::Value;

use crate::protocol::Task;

/// A question of a debate.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// The conflict that is debated.
    pub conflict: Conflict,
    /// The position of the agent that is asked.
    pub your_position: Position,
    /// The positions of the others.
    #[serde(default)]
    pub other_positions: Vec<Position>,
    /// The task with the contract; absent if it is too large.
    #[serde(default)]
    pub task: Option<Task>,
    /// The limits of the answer.
    #[serde(default)]
    pub limits: Option<Limits>,
}

/// A conflict between findings.
#[derive(Debug, Clone, Deserialize)]
pub struct Conflict {
    /// The kind of conflict.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The subject: a clause type, a topic, or `<subject>/<attribute>` of a fact.
    #[serde(default)]
    pub subject: Option<String>,
    /// A description, used when there is no subject.
    #[serde(default)]
    pub topic: Option<String>,
}

/// The kinds of conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The risk scores differ.
    RiskScoreDisagreement,
    /// One agent found a clause that another one reports as missing.
    ClausePresenceDisagreement,
    /// The severities of a topic differ.
    SeverityDisagreement,
    /// The recommendations differ.
    RecommendationConflict,
    /// The values of a fact differ.
    FactualDisagreement,
}

/// The position of one agent.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Position {
    /// The id of the agent.
    #[serde(default)]
    pub agent_id: String,
    /// The position in words.
    #[serde(default)]
    pub position: String,
    /// The position in a form that can be compared.
    #[serde(default)]
    pub value: Value,
    /// The confidence, 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Quotes from the contract.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// The limits of an answer.
#[derive(Debug, Clone, Deserialize)]
pub struct Limits {
    /// The longest answer, in tokens of about four letters.
    #[serde(default)]
    pub max_tokens: Option<usize>,
}
