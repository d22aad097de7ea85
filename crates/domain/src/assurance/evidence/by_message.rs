//! A stream, compared message by message with a copy that somebody has kept.

use std::collections::BTreeMap;
use std::iter::Peekable;

use concord_events::topology::StreamKind;
use concord_wire::Timestamp;

use super::{Difference, DifferenceKind, MessageDigest};

/// Differences that are named at most; the rest is counted.
const NAMED_MAX: usize = 100;

/// A message of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMessage {
    /// Its sequence in its stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// The digest of what it says.
    pub digest: MessageDigest,
}

/// Compares a stream with a copy while both are read in order.
#[derive(Debug)]
pub struct ByMessage<I: Iterator<Item = KeptMessage>> {
    stream: StreamKind,
    copy: Peekable<I>,
    retried: BTreeMap<u64, MessageDigest>,
    /// What was stored before has expired.
    expired_before: Option<Timestamp>,
    first: Option<u64>,
    differences: Vec<Difference>,
    unnamed: u64,
}

impl<I: Iterator<Item = KeptMessage>> ByMessage<I> {
    /// Begins before the first message. What was stored before `expired_before` may be gone from the
    /// front; for `retried` see [`StreamCheck`](super::StreamCheck).
    pub fn new(
        stream: StreamKind,
        copy: I,
        retried: BTreeMap<u64, MessageDigest>,
        expired_before: Option<Timestamp>,
    ) -> Self {
        Self {
            stream,
            copy: copy.peekable(),
            retried,
            expired_before,
            first: None,
            differences: Vec::new(),
            unnamed: 0,
        }
    }

    /// Takes the next message that is stored, or `is_archived`.
    pub fn take(&mut self, sequence: u64, digest: MessageDigest, is_archived: bool) {
        while let Some(kept) = self.copy.next_if(|kept| kept.sequence < sequence) {
            self.gone(&kept);
        }
        if !is_archived {
            self.first.get_or_insert(sequence);
        }
        if let Some(kept) = self.copy.next_if(|kept| kept.sequence == sequence)
            && kept.digest != digest
        {
            self.differ(
                DifferenceKind::Changed,
                &kept,
                "says something else than the copy",
            );
        }
    }

    /// What differs, after the last message.
    pub fn finish(mut self) -> Vec<Difference> {
        while let Some(kept) = self.copy.next() {
            self.gone(&kept);
        }
        if self.unnamed > 0 {
            let what = format!("{} more differ from the copy.", self.unnamed);
            self.differences.push(Difference {
                stream: Some(self.stream),
                ..Difference::of_heads(DifferenceKind::Changed, what)
            });
        }
        self.differences
    }

    fn gone(&mut self, kept: &KeptMessage) {
        let at_front = self.first.is_none_or(|first| kept.sequence < first);
        let expired = at_front && self.expired_before.is_some_and(|before| kept.at <= before);
        match self.retried.get(&kept.sequence) {
            _ if expired => {}
            Some(digest) if *digest == kept.digest => {}
            Some(_) => self.differ(
                DifferenceKind::Changed,
                kept,
                "was sent again as something else than the copy",
            ),
            None => self.differ(DifferenceKind::Missing, kept, "is gone"),
        }
    }

    fn differ(&mut self, kind: DifferenceKind, kept: &KeptMessage, what: &str) {
        if self.differences.len() >= NAMED_MAX {
            self.unnamed += 1;
            return;
        }
        let KeptMessage {
            sequence,
            subject,
            at,
            ..
        } = kept;
        self.differences.push(Difference {
            kind,
            stream: Some(self.stream),
            sequences: vec![[*sequence, *sequence]],
            what: format!("{subject} at {sequence}, stored at {at}, {what}."),
        });
    }
}
