//! Commitments: an agent says that it works on something, and nobody else is let to until it has ended.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_name;
use crate::fault::Fault;
use crate::id::AgentId;
use crate::timestamp::Timestamp;

/// What a resource is called that is a task: this and the id of the task.
pub const TASK_RESOURCE: &str = "task/";
/// The shortest lease, in milliseconds.
pub const LEASE_MS_MIN: u64 = 1_000;

/// What is done to a commitment.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CommitmentAct {
    /// Takes the resource, if nobody has it.
    #[default]
    Commit,
    /// Keeps it for another lease.
    Renew,
    /// Gives it back: the work is done, or given up.
    Release,
}

/// The payload of `commitment`, to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commitment {
    /// What is done.
    #[serde(default)]
    pub act: CommitmentAct,
    /// The resource: `task/<id>` for a task, or any name that those who need it agree on. Within a case it is the case's own.
    #[schemars(length(min = 1, max = 256))]
    pub resource: String,
    /// How long, in milliseconds, from now; the installation's usual lease where it is left out. It cannot be without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000))]
    pub lease_ms: Option<u64>,
    /// The reason, for people and agents to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub why: String,
}

impl Commitment {
    /// Checks the form. The longest lease is the installation's.
    pub fn check(&self) -> Result<(), Fault> {
        if self.resource.trim().is_empty() {
            return Err(Fault::invalid(
                "/payload/resource",
                "It is blank.",
                "Name what you commit to, for example \"task/t-7\".",
            ));
        }
        check_name("/payload/resource", &self.resource)?;
        check_name("/payload/why", &self.why)?;
        match self.lease_ms {
            Some(lease_ms) if lease_ms < LEASE_MS_MIN => Err(Fault::invalid(
                "/payload/lease_ms",
                format!("A lease of {lease_ms} ms is too short."),
                format!("Ask for at least {LEASE_MS_MIN} ms, or leave it out."),
            )),
            _ => Ok(()),
        }
    }
}

/// A commitment that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// The resource.
    pub resource: String,
    /// The agent that has it.
    pub holder: AgentId,
    /// Grows with every grant of the resource. Whoever guards the resource can refuse a holder with an earlier one.
    pub term: u64,
    /// The time at which it ends unless it is renewed.
    pub until: Timestamp,
    /// The holder's reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Why a commitment has ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CommitmentEnd {
    /// Its holder gave it back.
    Released,
    /// Its lease was not renewed in time.
    Expired,
    /// Its holder has left the register, or is unavailable.
    HolderGone,
    /// The task that it was for is done.
    WorkDone,
    /// The case that it belonged to is over.
    CaseOver,
}

impl CommitmentEnd {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Released,
        Self::Expired,
        Self::HolderGone,
        Self::WorkDone,
        Self::CaseOver,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::HolderGone => "holder_gone",
            Self::WorkDone => "work_done",
            Self::CaseOver => "case_over",
        }
    }
}

impl fmt::Display for CommitmentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_commitment_names_its_resource_and_its_lease_is_not_too_short() {
        for (fields, pointer) in [
            (json!({ "resource": "task/t-7" }), None),
            (json!({ "resource": " " }), Some("/payload/resource")),
            (
                json!({ "resource": "r".repeat(300) }),
                Some("/payload/resource"),
            ),
            (
                json!({ "resource": "r", "lease_ms": 0 }),
                Some("/payload/lease_ms"),
            ),
            (
                json!({ "resource": "r", "why": "w".repeat(300) }),
                Some("/payload/why"),
            ),
        ] {
            let read: Commitment = serde_json::from_value(fields).unwrap();
            let found = read.check().err().map(|fault| fault.pointer);
            assert_eq!(found.as_deref(), pointer, "{read:?}");
        }
    }

    #[test]
    fn an_end_is_written_as_it_is_named() {
        for end in CommitmentEnd::ALL {
            assert_eq!(serde_json::to_value(end).unwrap(), end.as_str());
        }
    }
}
