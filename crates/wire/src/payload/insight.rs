//! What everybody in a case is told of shared memory: entries, and what those of several agents have in common.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Snapshot;
use crate::id::{AgentId, Token};
use crate::timestamp::Timestamp;

/// Most bytes of a value, as JSON, that is told without being asked for.
pub const INSIGHT_VALUE_BYTES_MAX: usize = 2_048;
/// Most tags of an entry that are told.
pub const INSIGHT_TAGS_MAX: usize = 8;
/// Longest tag that is told, in bytes.
pub const INSIGHT_TAG_BYTES_MAX: usize = 64;
/// Most patterns of a checkpoint.
pub const PATTERNS_MAX: usize = 16;

/// What a checkpoint of a case is, at which everybody is told what was held back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// The findings are closed, and their conflicts were detected.
    Detected,
    /// The case has its decision, and something is ahead.
    Decided,
    /// The case has passed a gate, and something is ahead.
    GatePassed,
    /// The case is over: no other checkpoint follows.
    CaseOver,
    /// The period of the policy is over.
    Period,
    /// As much was held back as can be.
    Full,
    /// Something was written before the case was over, and heard of later.
    Late,
}

impl CheckpointReason {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Detected => "detected",
            Self::Decided => "decided",
            Self::GatePassed => "gate_passed",
            Self::CaseOver => "case_over",
            Self::Period => "period",
            Self::Full => "full",
            Self::Late => "late",
        }
    }
}

impl fmt::Display for CheckpointReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A checkpoint that a case has come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Its number in the case, from 1.
    pub checkpoint: u32,
    /// What it was.
    pub reason: CheckpointReason,
    /// When it was.
    pub at: Timestamp,
    /// How many entries were told.
    pub told: u32,
    /// What they had in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
}

/// An entry of a case as everybody in the case is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Insight {
    /// Whose memory it is in.
    pub agent: AgentId,
    /// The topic.
    pub topic: Token,
    /// The version, from 1.
    pub version: u64,
    /// The first snapshot that has this version.
    pub since: Snapshot,
    /// How much it matters, 0 to 1.
    pub importance: f64,
    /// How sure the agent is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Words under which it is found: the first eight of at most 64 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What is known; `null` where it is left out.
    pub value: Value,
    /// Whether the value is left out, because it has more than 2,048 bytes: it is read by asking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// Something that entries of several agents have in common: a topic, or a tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// The topic or tag, in lower case and with spaces in place of `_`.
    pub about: String,
    /// Whose entries they are, ordered; at least two.
    pub agents: Vec<AgentId>,
    /// How many entries.
    pub entries: u32,
    /// How sure the agents are together, 0 to 1: that of the surest, strengthened by each other as by a confirmation. None where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}
