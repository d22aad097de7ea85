//! Settings of the metrics of coordination.

use concord_domain::coordination_metrics::Limits;
use concord_wire::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is counted of how agents help each other.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinationSettings {
    /// Whether it is counted at all: one replica then hears every message.
    pub enabled: bool,
    /// Agents that lead others, besides the coordinator; when there are none, those of whose card a skill has the tag `lead`.
    pub leads: Vec<AgentId>,
    /// How long after a message an answer to it counts, in milliseconds.
    pub window_ms: u64,
}

impl Default for CoordinationSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            leads: Vec::new(),
            window_ms: Limits::default().window_ms,
        }
    }
}
