//! Whether what is stored is what was stored: heads are made from streams, and streams are compared
//! with heads that somebody has kept.
//!
//! A head digests what each stream has got since the head before, and names that one by its digest.
//! So the last head covers everything, and each interval can be checked on its own when what was
//! before it has expired. See `docs/adr/0042`.

mod by_message;
mod fold;
mod history;
mod stream_check;

pub use by_message::{ByMessage, KeptMessage};
pub use fold::{Content, Fold, MessageDigest, digest_of, head_text};
pub use history::{History, StoredHead};
pub use stream_check::{StreamCheck, StreamReport};

use concord_events::topology::StreamKind;
use serde::Serialize;

/// The kind of a difference between what is stored and what was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The head that somebody has kept does not fit its own digest.
    KeptHead,
    /// There is no head in the log.
    NoHeads,
    /// The head is not in the log, or another stands in its place.
    OtherHistory,
    /// A head does not follow the one before it.
    BrokenChain,
    /// Messages are gone that have not expired.
    Missing,
    /// Messages at the end are gone.
    Cut,
    /// Messages say something else.
    Changed,
    /// There are messages where there were none.
    Added,
    /// A signature is not that of the key that it names, or the key is another.
    Signature,
}

/// A difference between what is stored and what was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its kind.
    pub kind: DifferenceKind,
    /// The stream that it is about; none when it is about heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamKind>,
    /// First and last sequences that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<[u64; 2]>,
    /// What differs, as a sentence.
    pub what: String,
}

impl Difference {
    /// A difference about heads.
    pub fn of_heads(kind: DifferenceKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            stream: None,
            sequences: Vec::new(),
            what: what.into(),
        }
    }
}

/// Ranges of sequences for a reader, at most `most` of them.
fn named(ranges: &[[u64; 2]], most: usize) -> String {
    let range = |[first, last]: &[u64; 2]| {
        if first == last {
            first.to_string()
        } else {
            format!("{first} to {last}")
        }
    };
    let mut named: Vec<String> = ranges.iter().take(most).map(range).collect();
    if ranges.len() > most {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// Adds a range behind those there are, joined with the last where it adjoins.
fn add_range(ranges: &mut Vec<[u64; 2]>, [first, last]: [u64; 2]) {
    match ranges.last_mut() {
        Some(before) if before[1] + 1 == first => before[1] = last,
        _ => ranges.push([first, last]),
    }
}

/// The number of sequences in ranges.
fn in_ranges(ranges: &[[u64; 2]]) -> u64 {
    ranges.iter().map(|[first, last]| last - first + 1).sum()
}

#[cfg(test)]
mod tests;
