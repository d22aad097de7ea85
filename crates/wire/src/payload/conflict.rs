//! Typed disagreements between findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, DebateId};
use crate::payload::is_zero;

/// The kinds of conflict. The order is that of ranking between conflicts of equal weight.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConflictType {
    /// Opposing recommendations.
    RecommendationConflict,
    /// Risk scores further apart than the policy's threshold.
    RiskScoreDisagreement,
    /// The same topic at different severities.
    SeverityDisagreement,
    /// One says a clause is there, another that it is not.
    ClausePresenceDisagreement,
    /// The same attribute of the same subject with different values.
    FactualDisagreement,
    /// Estimates of the same quantity that are further apart than the policy allows.
    EstimateDisagreement,
    /// One agent disputes another's finding on purpose; it is not detected but asked for.
    Challenge,
}

impl ConflictType {
    /// The six that are detected, in ranking order.
    pub const DETECTED: [Self; 6] = [
        Self::RecommendationConflict,
        Self::RiskScoreDisagreement,
        Self::SeverityDisagreement,
        Self::ClausePresenceDisagreement,
        Self::FactualDisagreement,
        Self::EstimateDisagreement,
    ];

    /// The type as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RecommendationConflict => "recommendation_conflict",
            Self::RiskScoreDisagreement => "risk_score_disagreement",
            Self::SeverityDisagreement => "severity_disagreement",
            Self::ClausePresenceDisagreement => "clause_presence_disagreement",
            Self::FactualDisagreement => "factual_disagreement",
            Self::EstimateDisagreement => "estimate_disagreement",
            Self::Challenge => "challenge",
        }
    }
}

/// The position of one agent in a conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The agent that holds it.
    pub agent_id: AgentId,
    /// The position in words.
    pub position: String,
    /// The position as a value, where it has one: positions are compared by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How sure the agent is, 0 to 1.
    pub confidence: f64,
    /// What supports it. A text that ends in `… [shortened]` is the beginning of one in the agent's finding or answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The reasoning, in brief.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Items of evidence for which there is no room here; they are in the agent's finding or answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evidence_omitted: u32,
}

/// A typed disagreement, detected, not asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// Identity; also the id of the debate about it.
    pub conflict_id: DebateId,
    /// The type of the conflict.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// For a reader, for example `Risk score spread: 35-80`.
    pub topic: String,
    /// For a program: the clause type, the topic, `subject/attribute`, or the name of the score.
    pub subject: String,
    /// Rank weight, higher is debated earlier.
    pub weight: f64,
    /// The position of each party, ordered by agent id.
    pub positions: Vec<Position>,
    /// The number of positions for which there is no room here; they are in the events of the debate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub positions_omitted: u32,
}
