//! Events of the analyses of a case and of what they rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, DebateId};
use concord_wire::payload::{ChangedAssumption, ImpactReport, PublishAnalysis, Status};

events! {
    /// What can happen to the analyses of a case.
    ImpactEvent of Aggregate::Impact;
    Published(Box<AnalysisPublished>) = "published", effects: true, deadlines: false,
        "An agent has published an analysis, or a new version of one, with what it has used.";
    Assessed(Box<ImpactAssessed>) = "assessed", effects: true, deadlines: false,
        "A decision or an assumption has changed on which analyses rest; whose they are, and who opened the case, is told.";
}

/// Contents of `published`. What the version before said remains in the events before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalysisPublished {
    /// The case.
    pub case_id: CaseId,
    /// The version of the analysis, from 1.
    pub version: u32,
    /// The analysis. Each of its dependencies says the value that was used, as far as one is known.
    pub analysis: PublishAnalysis,
    /// The message, and its sender, whose analysis it is.
    pub heard: Heard,
}

/// Contents of `assessed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactAssessed {
    /// The case.
    pub case_id: CaseId,
    /// The debate whose outcome has changed something; none where a part of the case's decision has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debate_id: Option<DebateId>,
    /// The way in which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// Everything that has changed; the report names the first.
    pub changed: Vec<ChangedAssumption>,
    /// What that does.
    pub report: ImpactReport,
    /// Who is told: who opened the case, and the authors of affected analyses.
    pub told: Vec<AgentId>,
}
