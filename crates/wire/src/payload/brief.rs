//! What a person is shown beside the positions before they rule: the matter, what each party found, what was said, how far each
//! is to be believed, and what depends on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, DebateId, MessageId};
use crate::payload::{AlertFlag, Credibility, PrecedentClaim, Severity, Status, is_zero};
use crate::timestamp::Timestamp;

/// What an expert is shown beside the positions, read when the expert was given the debate. Each part has a bound of its own;
/// what there was no room for is shortened with a mark, or counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Background {
    /// The matter of the case.
    pub task: TaskExcerpt,
    /// What each party found in the case before the debate, in the order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<BriefedFinding>,
    /// Findings of further parties, for which there was no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_omitted: u32,
    /// What was said in the debate, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Statement>,
    /// Earlier statements, for which there was no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub said_omitted: u32,
    /// How far each party is to be believed, with every factor, by its track record when the brief was made. Mediation has
    /// compared the records of when the debate was opened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credibility: BTreeMap<AgentId, Credibility>,
    /// What has proved right after the earlier debates of the brief, where that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proved: BTreeMap<DebateId, ProvedRight>,
    /// What parties claim about earlier cases, beside what is known here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PrecedentClaim>,
    /// What waits for the ruling or rests on it.
    pub depends: Dependence,
    /// The last changes of regime while the case was open, without their implications, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertFlag>,
}

/// The beginning of what a case is about. The whole is shown by `concord case show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskExcerpt {
    /// The kind of task.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its input: a text as it is, anything else as JSON. A text that ends in `… [shortened]` is the beginning of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// Bytes of the whole input as JSON.
    pub bytes: u64,
    /// Who has opened the case.
    pub opened_by: AgentId,
}

/// What one party found, as far as it concerns what is disputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BriefedFinding {
    /// The party.
    pub agent_id: AgentId,
    /// The message that brought the finding.
    pub message_id: MessageId,
    /// Its confidence, 0 to 1.
    pub confidence: f64,
    /// The conclusion.
    pub summary: String,
    /// What follows from it for others, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact: Option<String>,
    /// The recommended action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// Risk, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<f64>,
    /// Overall severity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// What it says about the disputed subject, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// Its evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Items of the two lists above for which there was no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
}

/// Something that a party said in a debate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    /// The round; 0 for what was said outside of rounds, between challenger and challenged.
    pub round: u32,
    /// The party.
    pub agent_id: AgentId,
    /// Whether it then held a peer's position; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// Whether its position afterwards was another than before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    /// Its position afterwards; absent where it said nothing about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// What it said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// What proved right after an earlier debate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedRight {
    /// What proved right, in words.
    pub position: String,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How that is known.
    pub explanation: String,
    /// When it became known.
    pub at: Timestamp,
}

/// What waits for a ruling or rests on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dependence {
    /// The gate that reviews what is decided without a ruling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The version of the case's decision that stands meanwhile; absent while the case is not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<u32>,
    /// Whether the case is not decided before this debate has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaited: bool,
    /// Analyses that rest on what is disputed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// Other conflicts of the case about the same subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedConflict>,
    /// Further ones, for which there was no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub related_omitted: u32,
}

/// Another conflict of the case about the same subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedConflict {
    /// Its debate.
    pub debate_id: DebateId,
    /// What is disputed.
    pub topic: String,
    /// How its debate has ended; absent where it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// What stands about it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}
