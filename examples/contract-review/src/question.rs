//! The question a debate puts to a reader, as it arrives.

use serde::Deserialize;
use serde_json::Value;

use crate::protocol::Task;

/// A question put to a reader in a debate.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// What is disputed.
    pub conflict: Conflict,
    /// What the reader holds.
    pub your_position: Position,
    /// What the others hold.
    #[serde(default)]
    pub other_positions: Vec<Position>,
    /// The task again, if it is at hand.
    #[serde(default)]
    pub task: Option<Task>,
    /// Limits of the answer.
    #[serde(default)]
    pub limits: Option<Limits>,
}

/// A dispute.
#[derive(Debug, Clone, Deserialize)]
pub struct Conflict {
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What it is about: a clause type, a topic, or `<subject>/<attribute>`.
    #[serde(default)]
    pub subject: Option<String>,
    /// A description, used when there is no subject.
    #[serde(default)]
    pub topic: Option<String>,
}

/// The kinds of dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// How risky the contract is.
    RiskScoreDisagreement,
    /// Whether a clause is there.
    ClausePresenceDisagreement,
    /// How grave a topic is.
    SeverityDisagreement,
    /// What to do.
    RecommendationConflict,
    /// What a fact is.
    FactualDisagreement,
}

/// What somebody holds.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Position {
    /// Who.
    #[serde(default)]
    pub agent_id: String,
    /// In words.
    #[serde(default)]
    pub position: String,
    /// In a form that can be compared.
    #[serde(default)]
    pub value: Value,
    /// How sure they are.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Quotes from the contract.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// Limits of an answer.
#[derive(Debug, Clone, Deserialize)]
pub struct Limits {
    /// The longest answer, in tokens of about four letters.
    #[serde(default)]
    pub max_tokens: Option<usize>,
}
