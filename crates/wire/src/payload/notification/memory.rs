//! Notifications about shared memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, DebateId};
use crate::payload::Snapshot;
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
