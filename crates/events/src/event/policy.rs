//! Events of a policy that operators have stored under a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, PolicyName};
use concord_wire::policy::{Policy, PolicyBounds};

events! {
    /// What can happen to a stored policy.
    PolicyEvent of Aggregate::Policy;
    Put(PolicyPut) = "put", effects: false, deadlines: false,
        "An operator has stored a version of a policy; cases that are opened from now on begin with it.";
}

/// Contents of `put`: one version of a policy. Versions are never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPut {
    /// The name of the policy; `policy.preset` is the same.
    pub name: PolicyName,
    /// The version, from 1 without a gap.
    pub version: u32,
    /// The policy, with all its fields.
    pub policy: Policy,
    /// What an opener may change of it.
    pub bounds: PolicyBounds,
    /// The operator who stored it.
    pub by: AgentId,
    /// The operator's reason.
    pub why: String,
}
