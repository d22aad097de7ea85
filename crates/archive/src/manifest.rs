//! The manifest of a segment.

use std::io::Read as _;

use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_events::{SealedAggregate, SealedInterval, SegmentSealed};
use concord_wire::{CaseId, Timestamp};
use ruzstd::decoding::StreamingDecoder;
use serde::{Deserialize, Serialize};

use crate::message::ArchivedMessage;
use crate::segment::CaseContents;
use crate::{Difference, digest};

/// The form of manifest and segment.
pub(crate) const FORMAT: &str = "concord archive 1";

/// What is in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `concord archive 1`.
    pub(crate) format: String,
    /// The prefix of the installation.
    pub installation: String,
    /// The number of the segment, from 1.
    pub number: u64,
    /// SHA-256 in hexadecimal of the manifest before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The time at which it was made.
    pub at: Timestamp,
    /// The name of both files, without folder and ending.
    pub name: String,
    /// The bytes of the segment's file.
    pub bytes: u64,
    /// The bytes of its contents before they were compressed.
    pub plain_bytes: u64,
    /// SHA-256 in hexadecimal of the segment's file.
    pub digest: String,
    /// The cases, in the order in which they stand in the segment.
    pub cases: Vec<ArchivedCase>,
    /// Where in the streams the messages are, or were.
    pub streams: Vec<SealedInterval>,
}

/// A case in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedCase {
    /// The case.
    pub case_id: CaseId,
    /// The number of its messages, events among them.
    pub messages: u64,
    /// The bytes of its messages before they were compressed.
    pub plain_bytes: u64,
    /// SHA-256 in hexadecimal of these bytes.
    pub digest: String,
    /// The aggregates whose events are all among them.
    pub aggregates: Vec<SealedAggregate>,
    /// The sequences of its messages.
    pub sequences: Vec<Sequences>,
}

/// What is found in a segment.
#[derive(Debug)]
pub struct Unpacked {
    /// The cases of the manifest in their order, each with its messages, or what differs in it.
    pub cases: Vec<(CaseId, Result<CaseContents, Difference>)>,
    /// What differs in the file as a whole. Cases may all be what was sealed nevertheless.
    pub file: Option<Difference>,
}

/// The sequences of a case's messages in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    /// The stream.
    pub stream: StreamKind,
    /// First and last sequences.
    pub ranges: Vec<[u64; 2]>,
}

impl Manifest {
    /// Reads the manifest that an event names, and checks that it is that one.
    pub fn read(bytes: &[u8], sealed: &SegmentSealed) -> Result<Self, Difference> {
        let found = digest(bytes);
        if found != sealed.manifest {
            return Err(Difference::of_file(format!(
                "its digest is {found}, and the event that sealed it says {}",
                sealed.manifest
            )));
        }
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| Difference::of_file(format!("it cannot be read: {error}")))?;
        if manifest.format != FORMAT {
            return Err(Difference::of_file(format!(
                "its form is {:?}, and this build reads {FORMAT:?}",
                manifest.format
            )));
        }
        Ok(manifest)
    }

    /// The cases of the segment, each with its messages, where everything is as it was sealed.
    pub fn unpack(&self, segment: &[u8]) -> Result<Vec<CaseContents>, Difference> {
        let unpacked = self.examine(segment);
        let cases = unpacked.cases.into_iter().map(|(_, case)| case);
        let cases = cases.collect::<Result<_, _>>()?;
        unpacked.file.map_or(Ok(cases), Err)
    }

    /// Each case of the segment by itself: one is proved by its own digest, whatever has happened to the others.
    pub fn examine(&self, segment: &[u8]) -> Unpacked {
        let found = digest(segment);
        let differs = (found != self.digest).then(|| {
            format!(
                "the digest of the file is {found}, and its manifest says {}",
                self.digest
            )
        });
        let (mut plain, broken) = self.expand(segment);
        let split = |case: &ArchivedCase| {
            let contents = contents(case, &mut plain, broken.as_deref());
            (case.case_id.clone(), contents)
        };
        let cases = self.cases.iter().map(split).collect();
        let longer = (!plain.is_empty()).then(|| "it has more than its manifest says".to_owned());
        let mut file = differs.into_iter().chain(broken).chain(longer);
        let file = file.next().map(|first| {
            let rest = file.map(|next| format!("; {next}"));
            Difference::of_file(first + &rest.collect::<String>())
        });
        Unpacked { cases, file }
    }

    /// The contents of a segment, no longer than the manifest says; where they cannot be expanded to the end, up to there, and why.
    fn expand(&self, segment: &[u8]) -> (Bytes, Option<String>) {
        let mut plain = Vec::new();
        let expanded = StreamingDecoder::new(segment)
            .map_err(|error| error.to_string())
            .and_then(|decoder| {
                decoder
                    .take(self.plain_bytes.saturating_add(1))
                    .read_to_end(&mut plain)
                    .map_err(|error| error.to_string())
            });
        let broken = expanded.err();
        let broken = broken.map(|error| format!("it cannot be expanded: {error}"));
        (plain.into(), broken)
    }
}

/// The contents of the case that is next, which are taken off. They are passed over where they are not what was sealed.
fn contents(
    case: &ArchivedCase,
    plain: &mut Bytes,
    broken: Option<&str>,
) -> Result<CaseContents, Difference> {
    let differs = |why: String| Difference {
        case: Some(case.case_id.clone()),
        why: format!("the case {} {why}", case.case_id),
    };
    let length = usize::try_from(case.plain_bytes).unwrap_or(usize::MAX);
    let mut block = plain.split_to(length.min(plain.len()));
    if block.len() < length {
        let why = broken.map_or_else(String::new, |why| format!("; {why}"));
        return Err(differs(format!("is cut off{why}")));
    }
    if digest(&block) != case.digest {
        return Err(differs("is not what the manifest says".to_owned()));
    }
    let mut messages = Vec::new();
    while !block.is_empty() {
        let message = ArchivedMessage::read(&mut block);
        messages.push(message.ok_or_else(|| differs("cannot be read".to_owned()))?);
    }
    Ok(CaseContents {
        case_id: case.case_id.clone(),
        aggregates: case.aggregates.clone(),
        messages,
    })
}
