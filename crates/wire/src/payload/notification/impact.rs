//! Notifications about analyses and what they rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, DebateId};
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
