//! Events of commitments: who has which resource, and until when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId};
use concord_wire::payload::{CommitmentEnd, Lease};

events! {
    /// What can happen to the commitments of a case, or to those about one resource outside cases.
    CommitmentEvent of Aggregate::Commitment;
    Granted(LeaseGranted) = "granted", effects: true, deadlines: true,
        "An agent has committed to something, and nobody else had.";
    Renewed(LeaseGranted) = "renewed", effects: true, deadlines: true,
        "The holder of a commitment keeps it for another lease.";
    Ended(LeasesEnded) = "ended", effects: true, deadlines: true,
        "Commitments have ended: others can commit to the same now.";
}

/// How long commitments last, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeaseBounds {
    /// How long a commitment lasts that states no lease, in milliseconds.
    pub lease_ms: u64,
    /// The longest lease, in milliseconds. Whoever needs longer renews it. A lease that was given before this was lowered stays until its
    /// own end; where it was given more than a week ago, also when its holder is gone.
    pub lease_max_ms: u64,
    /// Most commitments of one agent at a time: in one case, and outside cases.
    pub per_agent: u32,
}

impl Default for LeaseBounds {
    fn default() -> Self {
        Self {
            lease_ms: 60_000,
            lease_max_ms: 3_600_000,
            per_agent: 32,
        }
    }
}

/// Contents of `granted`, and of `renewed`, where the term is the same and the end later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseGranted {
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The commitment.
    pub lease: Lease,
    /// The message, and its sender, who is the holder.
    pub heard: Heard,
}

/// A commitment that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedLease {
    /// The resource.
    pub resource: String,
    /// The agent that had it.
    pub holder: AgentId,
    /// The term that has ended.
    pub term: u64,
}

/// Contents of `ended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeasesEnded {
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// What has ended, at least one.
    pub leases: Vec<EndedLease>,
    /// Why.
    pub reason: CommitmentEnd,
    /// The message, where the holder has given it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
}
