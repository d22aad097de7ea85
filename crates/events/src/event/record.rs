//! Events of a track record: how often an agent was right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, DebateId};
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{CredibilityScore, Version};

events! {
    /// What can happen to a track record.
    TrackRecordEvent of Aggregate::TrackRecord;
    Observed(Observed) = "observed", effects: true, deadlines: false,
        "An agent has proved right or wrong; its credibility follows from all such observations.";
}

/// Contents of `observed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// The observation.
    pub observation: Observation,
    /// The debate in which the agent held what proved right or wrong, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debate_id: Option<DebateId>,
    /// The case in which it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// Who opened that case: one opener's cases weigh at most a share of a record. Absent where no case is known, and in events of
    /// earlier builds; such observations belong to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// The person or agent that reported it.
    pub by: AgentId,
    /// Where it was brought in from, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportOrigin>,
    /// What is told of it, and to whom; absent where it belongs to no case, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Box<ToldCredibility>>,
}

/// What those in a case are told of a credibility that has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToldCredibility {
    /// Who is told: who is in the case, and the agent.
    pub to: Vec<AgentId>,
    /// The disputed subject of the debate, for a reader.
    pub topic: String,
    /// The formula, which is that of the debate's policy.
    pub version: Version,
    /// The credibility before the observation.
    pub before: CredibilityScore,
    /// The credibility with it.
    pub after: CredibilityScore,
}

/// Where an observation was brought in from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportOrigin {
    /// What identifies it among the imported ones of the agent.
    pub id: String,
    /// The source that the importing person names.
    pub source: String,
}
