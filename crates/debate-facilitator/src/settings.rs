//! Settings of the debate facilitator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the debate facilitator.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FacilitatorSettings {
    /// What one opener may take of what all share.
    pub quota: QuotaSettings,
}

/// What one opener may take of what all share.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaSettings {
    /// Debates of one opener that may wait for a person; more overflow, as in a full queue. 0 for no limit beside the
    /// policies' `queue_max`.
    pub waiting_debates: u32,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        Self {
            waiting_debates: 200,
        }
    }
}
