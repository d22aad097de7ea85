//! Events of a detection: the conflicts among a case's findings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId};
use concord_wire::payload::{Circumstances, Conflict, is_zero};
use concord_wire::policy::{NameKind, Policy};

events! {
    /// What can happen to a detection.
    DetectionEvent of Aggregate::Detection;
    Completed(Box<Detected>) = "completed", effects: true, deadlines: false,
        "The conflicts among a case's findings were found and ranked; a debate is opened for each of the first.";
}

/// Contents of `completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detected {
    /// The case.
    pub case_id: CaseId,
    /// Who opened it, for the debates; none for cases of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// The case's policy, for the debates.
    #[serde(with = "concord_wire::policy::stored")]
    #[schemars(schema_with = "concord_wire::policy::stored::schema")]
    pub policy: Policy,
    /// The first gate of the case, for provisional decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The circumstances in which the case is judged.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
    /// The share of the doubt about a finding that confirmations which count have taken away, by the author of the finding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<AgentId, f64>,
    /// The conflicts to be debated, in ranking order.
    pub debated: Vec<Conflict>,
    /// How many answers each of their debates may have in a round, in the same order, where they would have more than the
    /// policy allows a case; empty where there is no need to share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers_per_round: Vec<u32>,
    /// The conflicts beyond the policy's limit; they are not debated.
    pub deferred: Vec<Conflict>,
    /// Further conflicts, of lower rank, for which there is no room here; they follow from the findings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflicts_omitted: u32,
    /// Estimates of the same quantity in units that cannot be converted into each other; nobody debates them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomparable: Vec<IncomparableEstimates>,
    /// Further ones for which there is no room here; they follow from the findings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incomparable_omitted: u32,
    /// Names in the findings that were taken for words of the policy's vocabulary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameMatch>,
    /// Further ones for which there is no room here; they follow from the findings and the policy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub names_omitted: u32,
    /// Whether the policy asks for the sentence model, and the detector had none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_absent: bool,
    /// Whether the facilitator opens the debates because of this event. Because of events of earlier versions it was sent a request
    /// for each, with a copy of the conflict and the policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens_debates: bool,
    /// The rules by which the conflicts were found; 0 for those of before there were numbers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rules: u32,
}

/// Estimates of one quantity that agents have given in units that cannot be converted into each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IncomparableEstimates {
    /// The metric, or `subject/metric`; the same as the subject of a conflict about it.
    pub subject: String,
    /// The units, and who has used each.
    pub units: Vec<EstimatesInUnit>,
}

/// Who has given an estimate in a unit, or in one that can be converted to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EstimatesInUnit {
    /// The unit; none for plain numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The agents, ordered by id.
    pub agents: Vec<AgentId>,
}

/// A name in findings, and the word for which it was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NameMatch {
    /// Of what it is a name.
    pub kind: NameKind,
    /// The name, in lower case.
    pub name: String,
    /// The word.
    pub word: String,
    /// By what they are the same.
    pub by: MatchedBy,
    /// How similar they are, 0 to 1, where the sentence model said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// By what a name is the same as a word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// It is one of the word's aliases.
    Vocabulary,
    /// The sentence model finds them similar enough for the policy.
    Model,
}
