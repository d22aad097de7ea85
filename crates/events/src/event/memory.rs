//! Events of shared memory: what an agent has written under its topics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::Priority;
use concord_wire::id::{AgentId, CaseId, Token};
use concord_wire::payload::{MemoryReach, Remember};
use serde_json::Value;

events! {
    /// What can happen to the memory of an agent.
    MemoryEvent of Aggregate::Memory;
    Put(MemoryPut) = "put", effects: true, deadlines: false,
        "An agent has written a version of a topic of its memory.";
}

/// How much of what one agent writes into its memory is kept. Every version is kept, so that a snapshot answers the same for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryBounds {
    /// Most bytes of all versions that one agent has written.
    pub bytes_max: u64,
    /// Most versions that one agent has written, of all its topics.
    pub versions_max: u32,
    /// Most topics of one agent.
    pub topics_max: u32,
}

impl Default for MemoryBounds {
    fn default() -> Self {
        Self {
            bytes_max: 4 << 20,
            versions_max: 8_192,
            topics_max: 256,
        }
    }
}

/// Contents of `put`: one version of a topic. Those before it remain in the events before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPut {
    /// The case that it belongs to, if to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The version: one more than that before.
    pub version: u64,
    /// What was written.
    pub entry: Remember,
    /// Whom it reaches without being asked for, and why. None outside cases, and where the case's policy tells nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<MemoryReach>,
    /// Who is told of it at once, each alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<AgentId>,
    /// The message, and its sender, whose memory it is.
    pub heard: Heard,
    /// The rules that it fulfils, in their order: each raises an alert. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fired: Vec<FiredRule>,
}

/// A rule that a version of a topic fulfils.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FiredRule {
    /// Its name.
    pub rule: Token,
    /// The version of the rules.
    pub rules_version: u32,
    /// What has happened, as the rule calls it.
    pub event_type: String,
    /// At which priority everybody is told.
    pub priority: Priority,
    /// What it looked at before, shortened where it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The same now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// What fulfilled the rule, in words.
    pub because: String,
    /// What the rule recommends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommended_actions: Vec<String>,
    /// Whether nobody is told: the agent's entries have raised as many alerts within an hour as the rules allow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}
