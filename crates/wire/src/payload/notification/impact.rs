//! Notifications about analyses and what they rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, DebateId, Token};
use crate::payload::{ImpactReport, Status};

/// The data of `impact_assessed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImpactAssessed {
    /// The debate whose outcome has changed something; absent where a part of the case's decision has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debate_id: Option<DebateId>,
    /// The way in which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// What that does to the analyses of the case. It names the largest changes; `concord impact show` has the others.
    pub report: ImpactReport,
}

/// The data of `rerun_progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunProgress {
    /// The number of the run, from 1 in each case.
    pub run: u32,
    /// The analysis that was done again, or could not be; absent at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis_id: Option<Token>,
    /// Why it could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// How many steps have ended.
    pub done: u32,
    /// How many there are.
    pub of: u32,
    /// Whether the run is over.
    pub is_over: bool,
}
