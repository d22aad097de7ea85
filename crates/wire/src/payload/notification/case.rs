//! Notifications about a case as a whole.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, DebateId, MessageId, Token};
use crate::payload::{AlertFlag, Decision, DecisionChange, RecordedFigures, Review};

/// The data of `case_decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseDecided {
    /// The decision of the case.
    pub decision: Decision,
}

/// The data of `case_decision_changed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseDecisionChanged {
    /// What made the new version, and what is different in it.
    pub change: DecisionChange,
    /// The new version of the decision.
    pub decision: Decision,
}

/// The data of `review_recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRecorded {
    /// The first reviewer.
    pub by: AgentId,
    /// The review as it was sent. A second reviewer who agrees sends one with the same action, debate and position.
    pub review: Review,
}

/// The data of `gate_reviewed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReviewed {
    /// The debate whose provisional decision was reviewed.
    pub debate_id: DebateId,
    /// The person who reviewed it.
    pub by: AgentId,
    /// The reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The review as it was sent.
    pub review: Review,
    /// The debate that takes the conflict up again; null unless the review asks for that.
    pub debated_again_as: Option<DebateId>,
}

/// The data of `gate_passed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatePassed {
    /// The gate that the case has passed.
    pub gate: String,
    /// The person who let it pass.
    pub by: AgentId,
    /// The reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The gate that comes next; null after the last one.
    pub next: Option<String>,
    /// The debates whose provisional decisions nobody has reviewed.
    pub unreviewed: Vec<DebateId>,
}

/// The data of `case_cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseCancelled {
    /// The operator who cancelled the case.
    pub by: AgentId,
    /// The operator's reason, as free text.
    pub why: String,
}

/// The data of `case_figures_recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFiguresRecorded {
    /// The number of the new version.
    pub version: u32,
    /// The number of the version that it replaces.
    pub replaces: u32,
    /// The run that has brought the figures.
    pub run: u32,
    /// The new figures, by analysis.
    pub figures: BTreeMap<Token, RecordedFigures>,
}

/// The data of `finding_confirmed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingConfirmed {
    /// The `message_id` of the finding.
    pub finding: MessageId,
    /// Who has confirmed it.
    pub by: AgentId,
    /// How sure that participant is, 0 to 1.
    pub confidence: f64,
    /// Why, in the participant's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The confidence of the finding with all its confirmations.
    pub strengthened: f64,
}

/// The data of `case_joined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseJoined {
    /// The agent that has joined.
    pub agent_id: AgentId,
    /// Who let it in.
    pub by: AgentId,
}

/// The data of `case_flagged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFlagged {
    /// The alert, and what of the case it concerns.
    #[serde(flatten)]
    pub flag: AlertFlag,
}
