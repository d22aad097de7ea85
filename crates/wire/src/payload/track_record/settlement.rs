//! What two credibilities say about a dispute.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the two whose credibilities are compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SettlementSide")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Why credibility settled a dispute, or did not.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SettlementReason {
    /// The more credible side wins.
    GapExceedsThreshold,
    /// The two are too near to each other for what is known of them.
    GapTooSmall,
    /// Too little is known of at least one of the two.
    InsufficientData,
}

impl SettlementReason {
    /// The reason as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GapExceedsThreshold => "gap_exceeds_threshold",
            Self::GapTooSmall => "gap_too_small",
            Self::InsufficientData => "insufficient_data",
        }
    }
}

/// What two credibilities say about a dispute between two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settlement {
    /// Distance between the scores.
    pub gap: f64,
    /// What the gap must exceed.
    pub threshold: f64,
    /// What is known of the first side.
    pub data_points_a: f64,
    /// What is known of the second side.
    pub data_points_b: f64,
    /// Who wins; nobody where the dispute goes on to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<Side>,
    /// Whether the credibilities settle the dispute, and why not.
    pub reason: SettlementReason,
}
