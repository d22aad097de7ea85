//! Events of the archive: which cases were written to it, and which of them were removed from the streams since.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use crate::topology::StreamKind;
use concord_wire::id::{CaseId, Token};
use concord_wire::timestamp::Timestamp;

/// Cases in one segment at most.
pub const SEGMENT_CASES_MAX: usize = 64;
/// Aggregates in one segment at most, so that the event that names them has room.
pub const SEGMENT_AGGREGATES_MAX: usize = 4_096;

events! {
    /// What can happen to the archive.
    ArchiveEvent of Aggregate::Archive;
    Sealed(SegmentSealed) = "sealed", effects: false, deadlines: false,
        "Cases that are over were written to a segment of the archive; see `concord archive`.";
    Purged(SegmentsPurged) = "purged", effects: false, deadlines: false,
        "What is in segments of the archive was removed from the streams.";
}

/// Contents of `sealed`: a segment, by the manifest that says what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentSealed {
    /// Its number, from 1.
    pub number: u64,
    /// The digest of the manifest before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// SHA-256 in hexadecimal of its manifest.
    pub manifest: String,
    /// The name of its files in the archive, without folder and ending.
    pub name: String,
    /// The time at which it was made.
    pub at: Timestamp,
    /// The bytes of its file.
    pub bytes: u64,
    /// The bytes of what is in it before they were compressed.
    pub plain_bytes: u64,
    /// The cases in it.
    #[schemars(length(max = SEGMENT_CASES_MAX))]
    pub cases: Vec<SealedCase>,
    /// Where in the streams its messages are, or were.
    pub streams: Vec<SealedInterval>,
}

/// A case in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealedCase {
    /// The case.
    pub case_id: CaseId,
    /// The aggregates whose events are all in the segment: the case itself, its detection, debates, deadlines and requests.
    pub aggregates: Vec<SealedAggregate>,
}

/// An aggregate in a segment.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SealedAggregate {
    /// Its kind.
    pub aggregate: Aggregate,
    /// Its id.
    pub id: Token,
    /// The sequence of its last event.
    pub last_sequence: u64,
}

/// The part of a stream in which the messages of a segment are, or were; others are among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealedInterval {
    /// The stream.
    pub stream: StreamKind,
    /// The sequence of the first message of the segment.
    pub first_sequence: u64,
    /// The sequence of its last message.
    pub last_sequence: u64,
    /// The number of its messages.
    pub count: u64,
}

/// Contents of `purged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentsPurged {
    /// Everything in segments up to this number was removed from the streams, except the cases in `kept`.
    pub through: u64,
    /// Cases that something happened to after they were sealed. They stay in the streams, and are archived anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<CaseId>,
}
