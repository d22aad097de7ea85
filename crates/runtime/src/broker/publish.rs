//! Storing a message: it is published, and the broker says where it stands.

use async_nats::jetstream::{self, ErrorCode};
use async_nats::{HeaderMap, Request, RequestError, Subject};
use bytes::Bytes;
use serde::Deserialize;

use crate::broker::Broker;
use crate::broker::refusals::is_no_room;

/// A message that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The stream.
    pub stream: String,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// Whether a message of this id stood there already, and this one was not stored.
    pub duplicate: bool,
}

/// Why a message was not stored, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something else was stored since what the message expects to be the last.
    #[error("something else was stored there")]
    Moved,
    /// There is no room for it: in the stream, in the account, or on the disk.
    #[error("the broker has no room for it; an operator makes room as docs/operating.md says")]
    Full(#[source] jetstream::Error),
    /// The broker does not want it.
    #[error("it was refused")]
    Refused(#[source] jetstream::Error),
    /// Nobody answered, in time or at all; or it is too large, and was not sent.
    #[error("there was no answer")]
    Unanswered(#[from] RequestError),
    /// No stream answers so.
    #[error("the answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// No stream answers so either.
    #[error("the answer does not say where it was stored")]
    Nowhere,
    /// It is no answer to this: any agent can have the broker acknowledge a message of its own to whom it likes.
    #[error("the answer is that of the stream {0:?}, in which it cannot be stored")]
    Elsewhere(String),
}

/// What the broker answers where something else was stored. The second one is that of a cluster, where the other message is still on its
/// way to the copies, and says no sequence.
const MOVED: [ErrorCode; 2] = [
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE,
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
];

/// The broker's acknowledgement. The client library has a type for it too, which is read by trying to read an error first.
#[derive(Deserialize)]
struct Acknowledgement {
    #[serde(default)]
    stream: String,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
    error: Option<jetstream::Error>,
}

impl Broker {
    /// Stores one message; done when the broker has said so. After an error other than [`Error::Moved`], [`Error::Full`] and
    /// [`Error::Refused`] it may have been stored or not.
    pub async fn store(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<Stored, Error> {
        let request = Request::new().headers(headers).payload(payload);
        let subject = Subject::from(subject);
        let kind = self.layout.stream_of(&subject);
        let stream = kind.map(|kind| self.layout.stream_name(kind));
        let result = match self.client.send_request(subject.clone(), request).await {
            Ok(answer) => read_acknowledgement(&answer.payload, stream.as_deref()),
            Err(error) => Err(error.into()),
        };
        if (result.is_err() || self.refusals.any())
            && let Some(stream) = kind
        {
            // Nobody answers what may not be sent, and the stream has nothing to do with it.
            let may = self.is_connected() && !self.is_denied(&subject);
            self.refusals.take(stream, &result, may);
        }
        result
    }

    /// Whether the broker has said that this process may not publish there.
    pub fn is_denied(&self, subject: &str) -> bool {
        let denied = self.denials.of_publishing(|denied| denied == subject);
        denied.is_some()
    }
}

/// Reads the answer of the broker, which is that of the stream that the message belongs to, where it is known to belong to one.
fn read_acknowledgement(answer: &[u8], expected: Option<&str>) -> Result<Stored, Error> {
    let Acknowledgement {
        stream,
        seq,
        duplicate,
        error,
    } = serde_json::from_slice(answer).map_err(Error::Unreadable)?;
    if !stream.is_empty() && expected.is_some_and(|expected| stream != expected) {
        return Err(Error::Elsewhere(stream));
    }
    match error {
        Some(error) if MOVED.contains(&error.error_code()) => Err(Error::Moved),
        Some(error) if is_no_room(&error) => Err(Error::Full(error)),
        Some(error) => Err(Error::Refused(error)),
        None if seq == 0 => Err(Error::Nowhere),
        None => Ok(Stored {
            stream,
            sequence: seq,
            duplicate,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_broker_says_where_a_message_stands_or_why_not() {
        let stored = |duplicate| Stored {
            stream: "S".into(),
            sequence: 7,
            duplicate,
        };
        let read = |answer: &[u8]| read_acknowledgement(answer, Some("S"));
        assert_eq!(read(br#"{"stream":"S","seq":7}"#).unwrap(), stored(false));
        assert_eq!(
            read(br#"{"stream":"S","domain":"hub","seq":7,"duplicate":true}"#).unwrap(),
            stored(true)
        );
        for (answer, word) in [
            (
                r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}"#,
                "something else was stored there",
            ),
            (
                r#"{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"S","seq":0}"#,
                "something else was stored there",
            ),
            (
                r#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"S","seq":0}"#,
                "the broker has no room",
            ),
            (
                r#"{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"S","seq":0}"#,
                "it was refused",
            ),
            (
                r#"{"type":"io.nats.jetstream.api.v1.stream_info_response"}"#,
                "does not say where",
            ),
            ("+OK", "cannot be read"),
            // What an agent sends itself, with the reply inbox of a service.
            (r#"{"stream":"T","seq":7}"#, "that of the stream \"T\""),
            (
                r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"T","seq":0}"#,
                "that of the stream \"T\"",
            ),
            (
                r#"{"stream":"T","seq":7,"duplicate":true}"#,
                "that of the stream \"T\"",
            ),
        ] {
            let error = read(answer.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{answer}: {error}");
        }
    }
}
