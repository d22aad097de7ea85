//! The JSON of the question that an agent gets in a debate.

use serde::Deserialize;
use serde_json::Value;

use crate::protocol::Task;

/// A question of a debate.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Question {
    /// The conflict that is debated.
    pub(crate) conflict: Conflict,
    /// The position of the agent that is asked.
    pub(crate) your_position: Position,
    /// The positions of the others.
    #[serde(default)]
    pub(crate) other_positions: Vec<Position>,
    /// The task with the contract; absent if it is too large.
    pub(crate) task: Option<Task>,
    pub(crate) limits: Option<Limits>,
}

/// A conflict between findings.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Conflict {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// The subject: a clause type, a topic, or `<subject>/<attribute>` of a fact.
    pub(crate) subject: Option<String>,
    /// A description, used when there is no subject.
    pub(crate) topic: Option<String>,
}

/// The kinds of conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
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
#[serde(default)]
pub(crate) struct Position {
    pub(crate) agent_id: String,
    /// The position in words.
    pub(crate) position: String,
    /// The position in a form that can be compared.
    pub(crate) value: Value,
    /// The confidence, 0 to 1.
    pub(crate) confidence: Option<f64>,
    /// Quotes from the contract.
    pub(crate) evidence: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Limits {
    /// The longest answer, in tokens of about four letters.
    pub(crate) max_tokens: Option<usize>,
}
