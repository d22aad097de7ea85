//! Events of a case's board.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Heard, events};
use crate::Aggregate;
use concord_wire::id::CaseId;

events! {
    /// What can happen to the board of a case.
    BoardEvent of Aggregate::Board;
    Put(EntryPut) = "put", effects: true, deadlines: false,
        "Somebody in the case has written an entry of its board.";
}

/// Contents of `put`: one version of an entry. What stood there before remains in the events before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntryPut {
    /// The case.
    pub case_id: CaseId,
    /// The name of the entry.
    pub name: String,
    /// Its version: one more than the version that the sender had read.
    pub version: u64,
    /// The value; null where the entry was emptied.
    pub value: Value,
    /// How sure the sender is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The message, and its sender, who is the author.
    pub heard: Heard,
}
