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

    /// The cases of the segment, each with its messages. What differs from the manifest is named by its case, where the file can
    /// be expanded at all.
    pub fn unpack(&self, segment: &[u8]) -> Result<Vec<CaseContents>, Difference> {
        let found = digest(segment);
        let differs = (found != self.digest).then(|| {
            format!(
                "the digest of the file is {found}, and its manifest says {}",
                self.digest
            )
        });
        let plain = match (self.expand(segment), &differs) {
            (Ok(plain), _) => plain,
            (Err(why), None) => return Err(Difference::of_file(why)),
            (Err(why), Some(differs)) => {
                return Err(Difference::of_file(format!("{differs}; {why}")));
            }
        };
        let cases = self.split(plain)?;
        differs.map_or(Ok(cases), |why| Err(Difference::of_file(why)))
    }

    /// The contents of a segment, no longer than the manifest says.
    fn expand(&self, segment: &[u8]) -> Result<Bytes, String> {
        let mut plain = Vec::new();
        let decoder = StreamingDecoder::new(segment)
            .map_err(|error| format!("it cannot be expanded: {error}"))?;
        decoder
            .take(self.plain_bytes.saturating_add(1))
            .read_to_end(&mut plain)
            .map_err(|error| format!("it cannot be expanded: {error}"))?;
        Ok(plain.into())
    }

    fn split(&self, mut plain: Bytes) -> Result<Vec<CaseContents>, Difference> {
        let mut cases = Vec::new();
        for case in &self.cases {
            let differs = |why: &str| Difference {
                case: Some(case.case_id.clone()),
                why: format!("the case {} {why}", case.case_id),
            };
            let length = usize::try_from(case.plain_bytes).unwrap_or(usize::MAX);
            if length > plain.len() {
                return Err(differs("is cut off"));
            }
            let mut block = plain.split_to(length);
            if digest(&block) != case.digest {
                return Err(differs("is not what the manifest says"));
            }
            let mut messages = Vec::new();
            while !block.is_empty() {
                let message = ArchivedMessage::read(&mut block);
                messages.push(message.ok_or_else(|| differs("cannot be read"))?);
            }
            cases.push(CaseContents {
                case_id: case.case_id.clone(),
                aggregates: case.aggregates.clone(),
                messages,
            });
        }
        match plain.is_empty() {
            true => Ok(cases),
            false => Err(Difference::of_file("it has more than its manifest says")),
        }
    }
}
