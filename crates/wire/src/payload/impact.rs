//! What a changed decision or assumption does to the analyses that rest on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, Token};
use crate::payload::{DependencyKind, Figure, is_zero};

/// What has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedAssumption {
    /// What it is.
    pub kind: DependencyKind,
    /// The debate, the case, or the name of the assumption.
    pub id: String,
    /// The part of the case's decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The value that most of the affected analyses have used; absent where none says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_value: Option<Figure>,
    /// The value now; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_value: Option<Figure>,
    /// How sure it is now, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The version of the case's decision in which it was last different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// What an estimate rests on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EstimateBasis {
    /// Nothing: no model says what becomes of the figure.
    None,
    /// A sensitivity that the analysis states, or one that is built in.
    Sensitivity,
    /// An elasticity that the analysis states.
    Elasticity,
    /// The formula of the figure.
    Formula,
    /// How sure the things are that the analysis uses.
    Cascade,
    /// What an agent has said that was asked.
    Agent,
}

/// What becomes of one analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalysisImpact {
    /// The analysis.
    pub analysis_id: Token,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The figure that is known to change most, in its thresholds; `confidence` where that is how sure the analysis is. Where no
    /// change is known one that is unknown. Absent for an analysis without figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Its value as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_value: Option<Figure>,
    /// The estimate; absent where there is none, and then doing the analysis again is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_new_value: Option<Figure>,
    /// How far it moves: as a share of the old value; for a risk score as a share of its scale; for a confidence as a difference; for a
    /// text 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// `delta` divided by the threshold of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnitude: Option<f64>,
    /// What the estimate rests on.
    pub basis: EstimateBasis,
    /// Why there is no estimate, where an agent is to give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Other figures of which nobody knows how they change, four at most; the analysis must be done again because of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// How sure the estimate is, 0 to 1; 0 where there is none.
    pub confidence: f64,
    /// How sure the analysis itself still is, where what it uses has become less certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_after: Option<f64>,
    /// Whether it must be done again.
    pub requires_rerun: bool,
    /// How long that takes, in minutes.
    pub rerun_minutes: u32,
}

/// What a change does to the analyses of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactReport {
    /// What has changed.
    pub changed_assumption: ChangedAssumption,
    /// How many analyses are affected, directly or not.
    pub affected_count: u32,
    /// The affected analyses: those that must be done again first, and of these the largest change first.
    pub impacts: Vec<AnalysisImpact>,
    /// Further analyses, of smaller changes, for which there is no room here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub impacts_omitted: u32,
    /// How long it takes to do again what must be done again, one after the other, in minutes.
    pub total_rerun_time: u64,
    /// How many must be done again.
    pub high_impact_count: u32,
}

/// Whether analyses are done again one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunStrategy {
    /// One after the other.
    Serial,
    /// Each as soon as what it uses is done.
    Parallel,
}

/// One analysis that is to be done again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerunStep {
    /// The analysis.
    pub analysis_id: Token,
    /// The agent that does it: its author.
    pub agent_id: AgentId,
    /// The steps that must have ended before, by their place in the plan, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// How much it changes, in its threshold; absent where there is no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnitude: Option<f64>,
    /// How long it takes, in minutes.
    pub rerun_minutes: u32,
}

/// The plan of doing analyses again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerunPlan {
    /// What must be done again, in order.
    pub required: Vec<RerunStep>,
    /// What else must be done again, and needs a further run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub required_omitted: u32,
    /// What is affected and need not be done again, the largest change first.
    pub optional: Vec<Token>,
    /// Further ones of these, for which there is no room here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub optional_omitted: u32,
    /// One after the other, or at the same time.
    pub strategy: RerunStrategy,
    /// How long it takes, in minutes.
    pub estimated_minutes: u64,
    /// Whether something must be done again before the analyses can be relied on.
    pub blocking: bool,
}
