//! Events of the rules over shared memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, Token};
use concord_wire::payload::AlertRules;
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to the rules by which what agents remember raises alerts.
    WatchEvent of Aggregate::Watch;
    RulesPut(AlertRulesPut) = "rules_put", effects: false, deadlines: false,
        "An operator has stored the rules; what is written into memory from now on is held against them.";
    RegimeChanged(RegimeChanged) = "regime_changed", effects: false, deadlines: false,
        "An alert says that another regime has begun; debates that are opened from now on are held in it.";
}

/// Contents of `rules_put`: all rules. Versions are never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertRulesPut {
    /// The version, from 1 without a gap.
    pub version: u32,
    /// The rules, in place of those before.
    pub rules: AlertRules,
    /// The operator who stored them.
    pub by: AgentId,
    /// The operator's reason.
    pub why: String,
}

/// Contents of `regime_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegimeChanged {
    /// The regime from now on.
    pub regime: String,
    /// The regime that the installation knew before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The alert that says so.
    pub alert: Token,
    /// When it was raised.
    pub raised_at: Timestamp,
    /// The sequence of its event: the later alert counts, in whatever order they are taken into account.
    pub sequence: u64,
}
