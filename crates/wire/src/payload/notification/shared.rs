//! Notifications about what a case shares: its board, and who has committed to what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::payload::{BoardListing, CommitmentEnd, Lease};

/// The data of `board_changed`: the entry without its value, which whoever is in the case asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardChanged {
    /// The entry as it stands now.
    pub entry: BoardListing,
}

/// The data of `commitment_made`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitmentMade {
    /// The commitment.
    pub lease: Lease,
}

/// The data of `commitment_ended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitmentEnded {
    /// The resource, which others can commit to now.
    pub resource: String,
    /// The agent that had it.
    pub holder: AgentId,
    /// The term that has ended.
    pub term: u64,
    /// Why it has ended.
    pub reason: CommitmentEnd,
}
