//! Settings of the metrics of coordination.

use concord_domain::coordination_metrics::Limits;
use concord_wire::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is counted of how agents help each other.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinationSettings {
    /// Whether it is counted for `/metrics`: one replica then hears every message, which takes some processor time of it and of the broker.
    /// `concord metrics` counts from what is stored, whatever this says.
    pub enabled: bool,
    /// Agents that lead others, besides the coordinator; when there are none, those of whose card a skill has the tag `lead`.
    pub leads: Vec<AgentId>,
    /// How long after a message an answer to it counts, in milliseconds.
    pub window_ms: u64,
}

impl Default for CoordinationSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            leads: Vec::new(),
            window_ms: Limits::default().window_ms,
        }
    }
}
