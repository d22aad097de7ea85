//! Digests: of a message, of an interval of a stream, of a head.

use concord_events::dead_letter::header::RETRIED;
use concord_events::topology::StreamKind;
use concord_events::{GAPS_MAX, Head, StreamInterval};
use concord_wire::Timestamp;
use concord_wire::header::MESSAGE_ID;
use concord_wire::hex::hex;
use sha2::{Digest, Sha256};

use super::add_range;

/// The digest of what a message says, without its place.
pub type MessageDigest = [u8; 32];

/// What a message says.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// Its subject.
    pub subject: &'a str,
    /// Its body, as it is stored.
    pub payload: &'a [u8],
}

impl Content<'_> {
    /// The digest of the message, with its headers in any order: SHA-256 over subject, headers by
    /// name, and body, each behind its length in eight bytes.
    ///
    /// A dead letter that is sent again is stored again with a mark, under another id. It still
    /// says what it said, so both headers are left out of its digest.
    pub fn digest<'h>(
        &self,
        stream: StreamKind,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    ) -> MessageDigest {
        let counts =
            |name: &str| stream != StreamKind::Dead || ![MESSAGE_ID, RETRIED].contains(&name);
        let mut headers: Vec<_> = headers
            .into_iter()
            .filter(|(name, _)| counts(name))
            .collect();
        // Several values of one name stay in their order.
        headers.sort_by_key(|(name, _)| *name);
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(self.subject.as_bytes());
        for (name, value) in headers {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        part(self.payload);
        hash.finalize().into()
    }
}

/// An interval of a stream while it is read.
#[derive(Debug, Clone)]
pub struct Fold {
    interval: StreamInterval,
    digest: [u8; 32],
}

impl Fold {
    /// Goes on behind the last interval of a stream; from its beginning where there is none.
    /// `kept_ms` says how long the stream keeps messages.
    pub fn after(last: Option<&StreamInterval>, stream: StreamKind, kept_ms: Option<u64>) -> Self {
        let end = last.map_or(0, |last| last.last_sequence);
        Self {
            interval: StreamInterval {
                stream,
                first_sequence: end + 1,
                last_sequence: end,
                count: 0,
                total: last.map_or(0, |last| last.total),
                digest: String::new(),
                since: None,
                until: None,
                kept_ms,
                gaps: Vec::new(),
            },
            digest: [0; 32],
        }
    }

    /// Begins anew, for a stream that was lost after its last interval and was made anew: it counts from one again.
    pub fn anew(last: &StreamInterval, kept_ms: Option<u64>) -> Self {
        let mut fold = Self::after(None, last.stream, kept_ms);
        fold.interval.total = last.total;
        fold
    }

    /// The sequence after the last message that was taken.
    pub fn next(&self) -> u64 {
        self.interval.last_sequence + 1
    }

    /// The number of messages that were taken.
    pub fn count(&self) -> u64 {
        self.interval.count
    }

    /// Whether a message at `sequence` would be behind one gap too many.
    pub fn is_full_for(&self, sequence: u64) -> bool {
        sequence > self.next() && self.interval.gaps.len() >= GAPS_MAX
    }

    /// Takes the next message. Each digest is SHA-256 over the one before (zeros at first), the
    /// sequence in eight bytes, and the digest of the message.
    pub fn take(&mut self, sequence: u64, at: Timestamp, message: &MessageDigest) {
        debug_assert!(sequence >= self.next(), "messages come in their order");
        let interval = &mut self.interval;
        if sequence > interval.last_sequence + 1 {
            add_range(
                &mut interval.gaps,
                [interval.last_sequence + 1, sequence - 1],
            );
        }
        let hash = Sha256::new()
            .chain_update(self.digest)
            .chain_update(sequence.to_be_bytes())
            .chain_update(message);
        self.digest = hash.finalize().into();
        interval.last_sequence = sequence;
        interval.count += 1;
        interval.total += 1;
        interval.since.get_or_insert(at);
        interval.until = Some(at);
    }

    /// The interval of the messages that were taken.
    pub fn interval(mut self) -> StreamInterval {
        self.interval.digest = hex(&self.digest);
        self.interval
    }
}

/// The text of a head that is digested and signed: a line for the head and one for each stream,
/// without digest and signature. It is made of numbers, times and fixed words, and so is the same
/// wherever it is made.
pub fn head_text(head: &Head) -> String {
    let previous = head.previous.as_deref().unwrap_or("-");
    let mut text = format!("concord head 1\n{} {previous} {}\n", head.number, head.at);
    let time = |time: Option<Timestamp>| time.map_or("-".to_owned(), |time| time.to_string());
    for interval in &head.streams {
        let StreamInterval {
            stream,
            first_sequence,
            last_sequence,
            count,
            total,
            digest,
            since,
            until,
            kept_ms,
            gaps,
        } = interval;
        let kept = kept_ms.map_or("-".to_owned(), |kept| kept.to_string());
        let gaps: Vec<String> = gaps
            .iter()
            .map(|[first, last]| format!("{first}-{last}"))
            .collect();
        text.push_str(&format!(
            "{} {first_sequence} {last_sequence} {count} {total} {digest} {} {} {kept} {}\n",
            stream.as_str(),
            time(*since),
            time(*until),
            gaps.join(",")
        ));
    }
    text
}

/// The digest that a head must have.
pub fn digest_of(head: &Head) -> String {
    crate::digest::digest(head_text(head).as_bytes())
}
