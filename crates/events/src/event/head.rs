//! Events of the head of the log: what is stored, digested in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use crate::topology::StreamKind;
use concord_wire::timestamp::Timestamp;

/// Gaps that one interval names at most; an interval ends before it has more.
pub const GAPS_MAX: usize = 256;

events! {
    /// What can happen to the head of the log.
    HeadEvent of Aggregate::Head;
    Advanced(Head) = "advanced", effects: false, deadlines: false,
        "What was stored since the head before was digested; see `concord audit`.";
}

/// Contents of `advanced`: a head. It covers everything that is stored, by the heads before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// Its number, from 1.
    pub number: u64,
    /// The digest of the head before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The time at which it was made.
    pub at: Timestamp,
    /// What each stream has got since the head before.
    pub streams: Vec<StreamInterval>,
    /// SHA-256 in hexadecimal of all of the above, in the form that `docs/adr/0042` says.
    pub digest: String,
    /// By the key of the installation, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<HeadSignature>,
}

/// A part of a stream, digested on its own. It can be checked when everything before it has expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamInterval {
    /// The stream.
    pub stream: StreamKind,
    /// The first sequence of the interval.
    pub first_sequence: u64,
    /// The last one; less than the first when there is nothing in it.
    pub last_sequence: u64,
    /// The number of messages in it.
    pub count: u64,
    /// The number of messages in it and in all intervals of the stream before it.
    pub total: u64,
    /// SHA-256 in hexadecimal over its messages, in order.
    pub digest: String,
    /// The time at which the broker stored its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The time at which the broker stored its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How long the stream keeps messages, in milliseconds, as it was then; none without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_ms: Option<u64>,
    /// Sequences in it, first and last, at which there was nothing already then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = GAPS_MAX))]
    pub gaps: Vec<[u64; 2]>,
}

/// A signature of a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeadSignature {
    /// The public key, ed25519, in hexadecimal.
    pub key: String,
    /// The signature of the text whose digest the head's is, in hexadecimal.
    pub value: String,
}
