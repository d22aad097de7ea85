//! What became known after a debate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Heard;
use concord_wire::id::CaseId;
use concord_wire::payload::{Circumstances, ProvedParty};
use concord_wire::timestamp::Timestamp;

/// Contents of `outcome_known`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeKnown {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The message that says so, and who sent it.
    pub heard: Heard,
    /// What proved right, in words.
    pub position: String,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How that is known.
    pub explanation: String,
    /// The time at which it became known.
    pub at: Timestamp,
    /// In which circumstances: those of the message, else those of the case.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
    /// Who was right, of all who held a position at the end.
    pub parties: Vec<ProvedParty>,
}
