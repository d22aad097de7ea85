//! The decision log: one entry for every resolution, chained so that a changed or missing one is noticed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{AgentId, DebateId};
use crate::payload::{Level, Provisional, Resolution, Status, is_zero};
use crate::timestamp::Timestamp;

/// One entry of a case's decision log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogEntry {
    /// The case's id and the entry's number: `c-42-3`.
    pub entry_id: String,
    /// Its place in the log of the case, from 1.
    pub number: u64,
    /// The time at which it was entered.
    pub at: Timestamp,
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject.
    pub topic: String,
    /// The level at which it was resolved; 1 for discussion and vote.
    pub level: Level,
    /// The way in which it ended.
    pub method: Status,
    /// The position that was agreed or applied; none where nothing was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Resolution>,
    /// How sure its supporters were: the mean of what they stated, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Evidence that was before whoever decided, shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Items of evidence for which there is no room here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evidence_omitted: u32,
    /// Analyses that rest on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impact: Vec<String>,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// At a gate, the reviewer who said the same before, where the policy wants two. The hash does not cover it, for the version before does not
    /// know it: the outcome that is stored with the entry says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// First digits of the key with which that person signed it; absent where nobody signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The reason, if a person decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// For a provisional one: rationale of the default, alternatives, review deadline, dependants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisional: Option<Box<Provisional>>,
    /// The version that the outcome gave the decision; none for an outcome of before the first decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_version: Option<u32>,
    /// The version of the decision that it replaced; none for the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces_version: Option<u32>,
    /// `hash` of the entry before; empty for the first.
    pub previous: String,
    /// SHA-256 over this entry with an empty `hash` and without `first_reviewer`, in hexadecimal.
    pub hash: String,
}

impl LogEntry {
    /// The hash that this entry must have.
    pub fn computed_hash(&self) -> String {
        let bare = Self {
            hash: String::new(),
            first_reviewer: None,
            ..self.clone()
        };
        // An entry has no map with other than text keys, so writing it cannot fail.
        crate::hex::hex(&Sha256::digest(
            serde_json::to_vec(&bare).unwrap_or_default(),
        ))
    }

    /// The entry with its hash.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.hash = self.computed_hash();
        self
    }
}
