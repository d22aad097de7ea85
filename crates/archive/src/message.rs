//! A message in a segment: each part behind its length, so that what was stored comes back byte for byte.

use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;

/// A message exactly as its stream held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedMessage {
    /// Its stream.
    pub stream: StreamKind,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// Its subject.
    pub subject: String,
    /// Its headers, by name; several values of one name in their order.
    pub headers: Vec<(String, String)>,
    /// Its body, as it was stored.
    pub payload: Bytes,
}

impl ArchivedMessage {
    /// Appends the message: stream, sequence, time in milliseconds (both in eight bytes), subject, number of headers (in four
    /// bytes), their names and values, body. Each text and the body stand behind their length in four bytes. Numbers are
    /// big-endian.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        part(to, self.stream.as_str().as_bytes());
        to.extend(self.sequence.to_be_bytes());
        to.extend(self.at.unix_millis().to_be_bytes());
        part(to, self.subject.as_bytes());
        to.extend(length(self.headers.len()));
        for (name, value) in &self.headers {
            part(to, name.as_bytes());
            part(to, value.as_bytes());
        }
        part(to, &self.payload);
    }

    /// Reads the next message, and moves `from` behind it; none where the bytes are no message.
    pub(crate) fn read(from: &mut Bytes) -> Option<Self> {
        let stream = text(from)?;
        let mut streams = StreamKind::ALL.into_iter();
        let stream = streams.find(|kind| kind.as_str() == stream)?;
        let sequence = u64::from_be_bytes(number(from)?);
        let at = Timestamp::from_unix_millis(i64::from_be_bytes(number(from)?));
        let subject = text(from)?;
        let count = u32::from_be_bytes(number(from)?);
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text(from)?, text(from)?));
        }
        let payload = taken(from)?;
        Some(Self {
            stream,
            sequence,
            at,
            subject,
            headers,
            payload,
        })
    }
}

/// A length in four bytes. The broker takes no message that has more.
fn length(length: usize) -> [u8; 4] {
    debug_assert!(u32::try_from(length).is_ok(), "{length} has four bytes");
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

fn part(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(length(bytes.len()));
    to.extend(bytes);
}

fn number<const N: usize>(from: &mut Bytes) -> Option<[u8; N]> {
    let bytes: [u8; N] = from.get(..N)?.try_into().ok()?;
    *from = from.slice(N..);
    Some(bytes)
}

fn taken(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(u32::from_be_bytes(number(from)?)).ok()?;
    (length <= from.len()).then(|| from.split_to(length))
}

fn text(from: &mut Bytes) -> Option<String> {
    String::from_utf8(taken(from)?.to_vec()).ok()
}
