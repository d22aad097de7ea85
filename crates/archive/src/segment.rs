//! Making a segment.

use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_events::{SealedAggregate, SealedCase, SealedInterval, SegmentSealed};
use concord_wire::{CaseId, Timestamp};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::digest;
use crate::manifest::{ArchivedCase, FORMAT, Manifest, Sequences};
use crate::message::ArchivedMessage;

/// Everything that is archived of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseContents {
    /// The case.
    pub case_id: CaseId,
    /// The aggregates whose events are all among the messages.
    pub aggregates: Vec<SealedAggregate>,
    /// What is said in it and what happened to it, by stream and sequence.
    pub messages: Vec<ArchivedMessage>,
}

impl CaseContents {
    /// The same in memory of its own: a part of the segment keeps all of the segment in memory, however small it is.
    pub(crate) fn alone(mut self) -> Self {
        for message in &mut self.messages {
            message.payload = Bytes::copy_from_slice(&message.payload);
        }
        self
    }
}

/// The place of a segment among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPlace {
    /// The prefix of the installation.
    pub installation: String,
    /// Its number, from 1.
    pub number: u64,
    /// The digest of the manifest before it; none for the first.
    pub previous: Option<String>,
    /// The time at which it is made.
    pub at: Timestamp,
    /// What nobody else has for the name of a file: two replicas that make the same segment at once write different files.
    pub unique: String,
}

/// A segment with its manifest, as both are written.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The manifest.
    pub manifest: Manifest,
    /// The file of the manifest.
    pub manifest_bytes: Bytes,
    /// The file of the segment.
    pub segment: Bytes,
}

/// Makes a segment of cases. Fails only where the manifest cannot be written as JSON.
pub fn pack(place: SegmentPlace, cases: &[CaseContents]) -> Result<Packed, serde_json::Error> {
    let mut plain = Vec::new();
    let mut archived = Vec::new();
    for case in cases {
        let begin = plain.len();
        for message in &case.messages {
            message.write(&mut plain);
        }
        let block = plain.get(begin..).unwrap_or_default();
        archived.push(ArchivedCase {
            case_id: case.case_id.clone(),
            messages: case.messages.len() as u64,
            plain_bytes: block.len() as u64,
            digest: digest(block),
            aggregates: case.aggregates.clone(),
            sequences: sequences(&case.messages),
        });
    }
    let segment = compress_to_vec(plain.as_slice(), CompressionLevel::Fastest);
    let file_digest = digest(&segment);
    let name = format!("{:08}-{}", place.number, place.unique);
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        installation: place.installation,
        number: place.number,
        previous: place.previous,
        at: place.at,
        name,
        bytes: segment.len() as u64,
        plain_bytes: plain.len() as u64,
        digest: file_digest,
        cases: archived,
        streams: intervals(cases),
    };
    Ok(Packed {
        manifest_bytes: serde_json::to_vec(&manifest)?.into(),
        manifest,
        segment: segment.into(),
    })
}

impl Packed {
    /// The event that names this segment.
    pub fn sealed(&self) -> SegmentSealed {
        let manifest = &self.manifest;
        let cases = manifest.cases.iter().map(|case| SealedCase {
            case_id: case.case_id.clone(),
            aggregates: case.aggregates.clone(),
        });
        SegmentSealed {
            number: manifest.number,
            previous: manifest.previous.clone(),
            manifest: digest(&self.manifest_bytes),
            name: manifest.name.clone(),
            at: manifest.at,
            bytes: manifest.bytes,
            plain_bytes: manifest.plain_bytes,
            cases: cases.collect(),
            streams: manifest.streams.clone(),
        }
    }
}

fn sequences(messages: &[ArchivedMessage]) -> Vec<Sequences> {
    let mut all = Vec::new();
    for stream in StreamKind::ALL {
        let mut ranges: Vec<[u64; 2]> = Vec::new();
        let of_stream = messages.iter().filter(|message| message.stream == stream);
        for sequence in of_stream.map(|message| message.sequence) {
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == sequence => *last = sequence,
                _ => ranges.push([sequence, sequence]),
            }
        }
        if !ranges.is_empty() {
            all.push(Sequences { stream, ranges });
        }
    }
    all
}

fn intervals(cases: &[CaseContents]) -> Vec<SealedInterval> {
    let mut intervals = Vec::new();
    for stream in StreamKind::ALL {
        let messages = cases.iter().flat_map(|case| &case.messages);
        let sequences: Vec<u64> = messages
            .filter(|message| message.stream == stream)
            .map(|message| message.sequence)
            .collect();
        if let (Some(first), Some(last)) = (sequences.iter().min(), sequences.iter().max()) {
            intervals.push(SealedInterval {
                stream,
                first_sequence: *first,
                last_sequence: *last,
                count: sequences.len() as u64,
            });
        }
    }
    intervals
}

#[cfg(test)]
mod tests;
