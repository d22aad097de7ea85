//! Events of synthesis: what entries of shared memory are held back in a case, and the checkpoints at which they are told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId};
use concord_wire::payload::{CheckpointReason, Insight, Pattern};
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to what is held back in a case.
    SynthesisEvent of Aggregate::Synthesis;
    Held(InsightHeld) = "held", effects: false, deadlines: true,
        "An entry of shared memory is held back until the next checkpoint.";
    Consolidated(InsightsTold) = "consolidated", effects: true, deadlines: true,
        "A checkpoint: what was held back is told to everybody in the case, together and once.";
}

/// Contents of `held`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsightHeld {
    /// The case.
    pub case_id: CaseId,
    /// What was written. It stands in the place of an earlier version of the same topic that is held back.
    pub insight: Insight,
    /// When the next checkpoint is at the latest; none where the case's policy has no period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// Contents of `consolidated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsightsTold {
    /// The case.
    pub case_id: CaseId,
    /// The number of the checkpoint in the case, from 1.
    pub checkpoint: u32,
    /// What the checkpoint is.
    pub reason: CheckpointReason,
    /// What was held back, by topic and agent: of each topic of an agent the last version that was held.
    pub insights: Vec<Insight>,
    /// How many that were held back are not told, because a version that was not held back stands in their place.
    #[serde(default, skip_serializing_if = "is_none")]
    pub replaced: u32,
    /// What these entries and those that were told at once have in common; empty where it follows from these entries alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
    /// Who is told, each alone; nobody where nothing was held back and there is no pattern.
    pub told: Vec<AgentId>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
fn is_none(count: &u32) -> bool {
    *count == 0
}
