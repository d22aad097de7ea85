//! Single messages as the stream's leader describes them in JSON, whether or not a client could parse them.

use async_nats::jetstream;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::RequestError;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderName, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use concord_archive::ArchivedMessage;
use concord_wire::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::broker::Broker;

/// How the first line of a header block begins.
const HEADERS_VERSION: &str = "NATS/1.0";

/// Why it is not known whether there is such a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Nobody answered.
    #[error(transparent)]
    Unanswered(#[from] RequestError),
    /// The broker could not look, as where a stream has no leader at the moment.
    #[error("it could not look")]
    Refused(#[source] jetstream::Error),
}

/// A message as the broker describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct RawMessage {
    pub(crate) subject: String,
    #[serde(rename = "seq")]
    pub(crate) sequence: u64,
    /// When it was stored, as RFC 3339.
    #[serde(default)]
    pub(crate) time: String,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl RawMessage {
    /// An archived message, as the broker would describe it if it still had it.
    pub(crate) fn archived(message: &ArchivedMessage) -> Self {
        let mut block = format!("{HEADERS_VERSION}\r\n");
        for (name, value) in &message.headers {
            block.push_str(&format!("{name}: {value}\r\n"));
        }
        block.push_str("\r\n");
        Self {
            subject: message.subject.clone(),
            sequence: message.sequence,
            time: message.at.to_string(),
            hdrs: BASE64_STANDARD.encode(block),
            data: BASE64_STANDARD.encode(&message.payload),
        }
    }

    /// The header block.
    pub(crate) fn headers(&self) -> Result<Vec<u8>, base64::DecodeError> {
        BASE64_STANDARD.decode(&self.hdrs)
    }

    /// The body.
    pub(crate) fn body(&self) -> Result<Vec<u8>, base64::DecodeError> {
        BASE64_STANDARD.decode(&self.data)
    }
}

/// The first message from `sequence` on whose subject matches `filter`.
pub(crate) async fn next(
    broker: &Broker,
    stream: &str,
    filter: &str,
    sequence: u64,
) -> Result<Option<RawMessage>, Error> {
    ask(
        broker,
        stream,
        &json!({ "seq": sequence, "next_by_subj": filter }),
    )
    .await
}

/// The first message that was stored at this time or later and whose subject matches `filter`.
pub(crate) async fn next_since(
    broker: &Broker,
    stream: &str,
    filter: &str,
    at: Timestamp,
) -> Result<Option<RawMessage>, Error> {
    ask(
        broker,
        stream,
        &json!({ "start_time": at, "next_by_subj": filter }),
    )
    .await
}

/// The last message whose subject matches `filter`.
pub(crate) async fn last(
    broker: &Broker,
    stream: &str,
    filter: &str,
) -> Result<Option<RawMessage>, Error> {
    ask(broker, stream, &json!({ "last_by_subj": filter })).await
}

/// The message at `sequence`.
pub(crate) async fn at(
    broker: &Broker,
    stream: &str,
    sequence: u64,
) -> Result<Option<RawMessage>, Error> {
    ask(broker, stream, &json!({ "seq": sequence })).await
}

async fn ask(broker: &Broker, stream: &str, request: &Value) -> Result<Option<RawMessage>, Error> {
    #[derive(Deserialize)]
    struct Found {
        message: RawMessage,
    }
    match broker
        .jetstream
        .request(format!("STREAM.MSG.GET.{stream}"), request)
        .await?
    {
        Response::Ok(Found { message }) => Ok(Some(message)),
        // There is none, or it is gone by now. Anything else says nothing about the message.
        Response::Err { error } if error.error_code() == ErrorCode::NO_MESSAGE_FOUND => Ok(None),
        Response::Err { error } => Err(Error::Refused(error)),
    }
}

/// What the client library cannot parse of a message, if anything. In JSON, what was no UTF-8 has become U+FFFD.
pub(crate) fn unparsable(subject: &str, headers: &[u8]) -> Option<&'static str> {
    if subject
        .chars()
        .any(|c| c == char::REPLACEMENT_CHARACTER || c.is_whitespace())
    {
        return Some("its subject is not UTF-8, or has spaces");
    }
    if headers.is_empty() {
        return None;
    }
    let Ok(text) = std::str::from_utf8(headers) else {
        return Some("its headers are not UTF-8");
    };
    let mut lines = text.lines();
    let Some(status) = lines
        .next()
        .and_then(|line| line.strip_prefix(HEADERS_VERSION))
    else {
        return Some("its headers do not begin with NATS/1.0");
    };
    if status
        .split_whitespace()
        .next()
        .is_some_and(|code| code.parse::<StatusCode>().is_err())
    {
        return Some("its headers begin with a status that is none");
    }
    let mut is_first = true;
    for line in lines.filter(|line| !line.is_empty()) {
        // A line that begins with a space goes on with the value before it.
        let continues = !is_first && line.starts_with(char::is_whitespace);
        let named = line
            .split_once(':')
            .is_some_and(|(name, _)| name.parse::<HeaderName>().is_ok());
        if !continues && !named {
            return Some("a header has no name");
        }
        is_first = false;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_cannot_parse_is_known() {
        const SUBJECT: &str = "concord.v1.msg.c.alice.coordinator.finding";
        for (subject, headers, good) in [
            (SUBJECT, "", true),
            (SUBJECT, "NATS/1.0\r\n\r\n", true),
            (
                SUBJECT,
                "NATS/1.0\r\nNats-Msg-Id: 1\r\ntraceparent: 00-1-2-01\r\n\r\n",
                true,
            ),
            (SUBJECT, "NATS/1.0\r\nA: b\r\n c\r\n\r\n", true),
            (SUBJECT, "NATS/1.0 503 No Responders\r\n\r\n", true),
            (SUBJECT, "NATS/1.0 99999\r\n\r\n", false),
            (SUBJECT, "NATS/1.0 what\r\n\r\n", false),
            (SUBJECT, "no header at all\r\n\r\n", false),
            (SUBJECT, "NATS/1.0\r\nno colon\r\n\r\n", false),
            (SUBJECT, "NATS/1.0\r\n A: b\r\n\r\n", false),
            ("concord.v1.msg.c.alice.coordinator.\u{fffd}", "", false),
            (
                "concord.v1.msg.c.alice.coordinator.a\u{2003}b",
                "NATS/1.0\r\n\r\n",
                false,
            ),
        ] {
            assert_eq!(
                unparsable(subject, headers.as_bytes()).is_none(),
                good,
                "{subject:?} {headers:?}"
            );
        }
        assert!(unparsable(SUBJECT, b"NATS/1.0\r\nA: \xff\r\n\r\n").is_some());
    }
}
