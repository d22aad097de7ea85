//! Notifications about shared memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, DebateId};
use crate::payload::{CheckpointReason, Insight, MemoryReach, Pattern, Snapshot};
use crate::timestamp::Timestamp;

/// The data of `memory_sync`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySync {
    /// The debate that begins. An `acknowledgement` of this message says that everything is written.
    pub debate_id: DebateId,
    /// The parties that are asked, ordered.
    pub parties: Vec<AgentId>,
    /// When the snapshot is taken at the latest, and everybody may write again, whoever has failed.
    pub until: Timestamp,
}

/// The data of `memory_synced`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySynced {
    /// The debate.
    pub debate_id: DebateId,
    /// What memory held when the debate began: messages of the debate refer to it.
    pub snapshot: Snapshot,
    /// The parties that have not said in time that everything was written.
    pub silent: Vec<AgentId>,
}

/// The data of `insight_shared`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsightShared {
    /// What was written.
    pub insight: Insight,
    /// Why it is told at once.
    pub reach: MemoryReach,
}

/// The data of `insights_consolidated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsightsConsolidated {
    /// The number of the checkpoint in the case, from 1.
    pub checkpoint: u32,
    /// What the checkpoint is.
    pub reason: CheckpointReason,
    /// What was held back, by topic and agent, at most 64: of each topic of an agent the last version.
    pub insights: Vec<Insight>,
    /// What entries of several agents among them have in common, most agents first; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
}
