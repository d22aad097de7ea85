//! A stream, compared with the intervals of heads.

use std::collections::{BTreeMap, VecDeque};

use concord_events::StreamInterval;
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use serde::Serialize;

use super::{Difference, DifferenceKind, Fold, MessageDigest, add_range, in_ranges, named};

/// Ranges of sequences that a sentence names at most.
const NAMED_MAX: usize = 8;

/// A message at its place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    sequence: u64,
    at: Timestamp,
    digest: MessageDigest,
}

/// Compares a stream with the intervals of heads while it is read in order.
#[derive(Debug)]
pub struct StreamCheck {
    /// The intervals of the stream before it was made anew, where it was.
    lost: Vec<StreamInterval>,
    /// When the first message was stored since then that heads cover.
    anew_since: Option<Timestamp>,
    intervals: VecDeque<StreamInterval>,
    retried: BTreeMap<u64, MessageDigest>,
    now: Timestamp,
    /// The messages of the first interval that is left.
    entries: Vec<Entry>,
    /// The first sequence that is still stored.
    first: Option<u64>,
    report: StreamReport,
}

/// What became of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// The stream.
    pub stream: StreamKind,
    /// Messages that are as they were.
    pub verified: u64,
    /// Messages that have been removed because of their age, as the stream was set.
    pub expired: u64,
    /// Messages that cannot be checked, because others of their interval are gone.
    pub unverifiable: u64,
    /// Messages that no head covers yet, or none that is to be believed.
    pub uncovered: u64,
    /// Sequences, first and last, at which messages are gone that have not expired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[u64; 2]>,
    /// Sequences at which there are messages where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<[u64; 2]>,
    /// First and last sequences of intervals whose messages say something else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<[u64; 2]>,
    /// Sequences, first and last, that the stream had before it was made anew, of what cannot have expired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<[u64; 2]>,
    /// Whether the last messages that heads cover are gone, and none is stored after them.
    pub cut: bool,
}

impl StreamCheck {
    /// Begins before the first message. `retried` has the digests of the dead letters that were sent
    /// again, by the sequence they had: their marked copies stand in for them.
    pub fn new(
        stream: StreamKind,
        intervals: Vec<StreamInterval>,
        retried: BTreeMap<u64, MessageDigest>,
        now: Timestamp,
    ) -> Self {
        // A stream that was made anew counts from one again.
        let is_anew = |pair: &[StreamInterval]| matches!(pair, [before, after] if after.first_sequence <= before.last_sequence);
        let anew = intervals.windows(2).rposition(is_anew);
        let mut lost = intervals;
        let intervals = lost.split_off(anew.map_or(0, |place| place + 1));
        let first = intervals.first().filter(|_| anew.is_some());
        Self {
            anew_since: first.and_then(|first| first.since),
            lost,
            intervals: intervals.into(),
            retried,
            now,
            entries: Vec::new(),
            first: None,
            report: StreamReport {
                stream,
                verified: 0,
                expired: 0,
                unverifiable: 0,
                uncovered: 0,
                missing: Vec::new(),
                added: Vec::new(),
                changed: Vec::new(),
                lost: Vec::new(),
                cut: false,
            },
        }
    }

    /// Takes the next message. What `is_archived` stands in the place where it was in the stream; it says nothing of what has
    /// expired before it.
    pub fn take(&mut self, sequence: u64, at: Timestamp, digest: MessageDigest, is_archived: bool) {
        if !is_archived {
            self.first.get_or_insert(sequence);
        } else if self.anew_since.is_some_and(|since| at < since) {
            // It stood in the stream that is lost.
            return;
        }
        while self
            .intervals
            .front()
            .is_some_and(|interval| interval.last_sequence < sequence)
        {
            if let Some(interval) = self.intervals.pop_front() {
                self.judge(&interval);
            }
        }
        let is_covered = self
            .intervals
            .front()
            .is_some_and(|interval| interval.first_sequence <= sequence);
        if is_covered {
            self.entries.push(Entry {
                sequence,
                at,
                digest,
            });
        } else {
            self.report.uncovered += 1;
        }
    }

    /// What became of the stream, after its last message.
    pub fn finish(mut self) -> StreamReport {
        let end = self.intervals.back().map(|interval| interval.last_sequence);
        while let Some(interval) = self.intervals.pop_front() {
            self.judge(&interval);
        }
        for interval in std::mem::take(&mut self.lost) {
            self.lose(&interval);
        }
        let last = self.report.missing.last();
        self.report.cut = end.is_some() && last.map(|[_, last]| *last) == end;
        self.report
    }

    /// Compares an interval with the messages that are there of it.
    fn judge(&mut self, interval: &StreamInterval) {
        let entries = std::mem::take(&mut self.entries);
        let stored = entries.len() as u64;
        let was_gap = |sequence: u64| {
            interval
                .gaps
                .iter()
                .any(|[first, last]| (*first..=*last).contains(&sequence))
        };
        let (added, entries): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| was_gap(entry.sequence));
        for Entry { sequence, .. } in added {
            add_range(&mut self.report.added, [sequence, sequence]);
        }
        let entries = self.with_retried(interval, entries, was_gap);
        let missing = missing(interval, &entries);
        if missing.is_empty() {
            let mut fold = Fold::after(None, interval.stream, None);
            for Entry {
                sequence,
                at,
                digest,
            } in &entries
            {
                fold.take(*sequence, *at, digest);
            }
            if fold.interval().digest == interval.digest {
                self.report.verified += stored;
            } else {
                add_range(
                    &mut self.report.changed,
                    [interval.first_sequence, interval.last_sequence],
                );
            }
            return;
        }
        self.report.unverifiable += stored;
        let first = self.first.unwrap_or(u64::MAX);
        for range in missing {
            // The broker removes from the front, and only what is old enough.
            if range[1] < first && self.has_expired(interval, entries.is_empty()) {
                self.report.expired += in_ranges(&[range]);
            } else {
                add_range(&mut self.report.missing, range);
            }
        }
    }

    /// Counts an interval that went with a stream which was made anew.
    fn lose(&mut self, interval: &StreamInterval) {
        let gone = missing(interval, &[]);
        if self.has_expired(interval, true) {
            self.report.expired += in_ranges(&gone);
        } else {
            for range in gone {
                add_range(&mut self.report.lost, range);
            }
        }
    }

    /// The messages of an interval, with the marked copies of letters in the places of the letters.
    fn with_retried(
        &self,
        interval: &StreamInterval,
        mut entries: Vec<Entry>,
        was_gap: impl Fn(u64) -> bool,
    ) -> Vec<Entry> {
        let places = interval.first_sequence..=interval.last_sequence.max(interval.first_sequence);
        for (sequence, digest) in self.retried.range(places) {
            let is_there = entries
                .binary_search_by_key(sequence, |entry| entry.sequence)
                .is_ok();
            if !is_there && !was_gap(*sequence) {
                entries.push(Entry {
                    sequence: *sequence,
                    at: self.now,
                    digest: *digest,
                });
                entries.sort_by_key(|entry| entry.sequence);
            }
        }
        entries
    }

    /// Whether messages at the front of an interval can have been removed because of their age: all
    /// of them, or the first.
    fn has_expired(&self, interval: &StreamInterval, all: bool) -> bool {
        let stored = if all { interval.until } else { interval.since };
        let expires = stored
            .zip(interval.kept_ms)
            .map(|(stored, kept)| stored.plus_millis(kept));
        expires.is_some_and(|expires| expires <= self.now)
    }
}

/// The sequences of an interval at which a message must be and is none.
fn missing(interval: &StreamInterval, entries: &[Entry]) -> Vec<[u64; 2]> {
    let there = entries.iter().map(|entry| [entry.sequence, entry.sequence]);
    let mut known: Vec<[u64; 2]> = there.chain(interval.gaps.iter().copied()).collect();
    known.sort_unstable();
    let mut missing = Vec::new();
    let mut next = interval.first_sequence;
    for [first, last] in known {
        if first > next {
            add_range(&mut missing, [next, first - 1]);
        }
        next = next.max(last + 1);
    }
    if next <= interval.last_sequence {
        add_range(&mut missing, [next, interval.last_sequence]);
    }
    missing
}

impl StreamReport {
    /// What differs, in sentences.
    pub fn differences(&self) -> Vec<Difference> {
        let name = self.stream.as_str();
        let mut differences = Vec::new();
        let mut add = |kind, ranges: &[[u64; 2]], what: String| {
            if !ranges.is_empty() {
                differences.push(Difference {
                    kind,
                    stream: Some(self.stream),
                    sequences: ranges.to_vec(),
                    what,
                });
            }
        };
        let (count, places) = (in_ranges(&self.missing), named(&self.missing, NAMED_MAX));
        let gone = if count == 1 {
            "message is"
        } else {
            "messages are"
        };
        let (kind, end) = match self.cut {
            true => (
                DifferenceKind::Cut,
                " The last that was there is among them.",
            ),
            false => (DifferenceKind::Missing, ""),
        };
        let what =
            format!("{count} {gone} gone from {name} that cannot have expired, at {places}.{end}");
        add(kind, &self.missing, what);
        let (count, places) = (in_ranges(&self.lost), named(&self.lost, NAMED_MAX));
        let what = format!(
            "{name} were lost and made anew: what they held at {places} is not in them any more, {count} in number, and cannot have \
             expired."
        );
        add(DifferenceKind::Missing, &self.lost, what);
        let places = named(&self.changed, NAMED_MAX);
        let what = format!("What {name} hold from {places} is not what was stored there.");
        add(DifferenceKind::Changed, &self.changed, what);
        let places = named(&self.added, NAMED_MAX);
        let what = format!("At {places} of {name} stands what was not there.");
        add(DifferenceKind::Added, &self.added, what);
        differences
    }
}
