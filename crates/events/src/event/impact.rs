//! Events of the analyses of a case and of what they rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::id::CaseId;
use concord_wire::payload::PublishAnalysis;

events! {
    /// What can happen to the analyses of a case.
    ImpactEvent of Aggregate::Impact;
    Published(Box<AnalysisPublished>) = "published", effects: true, deadlines: false,
        "An agent has published an analysis, or a new version of one, with what it has used.";
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
