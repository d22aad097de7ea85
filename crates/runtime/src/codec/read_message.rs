//! Reading a message: from its subject, headers and bytes to an envelope. Everything that reads messages does it here.

use async_nats::HeaderMap;
use concord_wire::subject::{SubjectForm, SubjectSpace};
use concord_wire::{Dialect, Envelope, Fault, Timestamp, dialect};

use crate::codec::Error;
use crate::codec::dialect::{declared, plain};

/// A message as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct StoredMessage<'a> {
    /// Its subject.
    pub subject: &'a str,
    /// Its headers.
    pub headers: Option<&'a HeaderMap>,
    /// Its body, as it was sent.
    pub body: &'a [u8],
    /// Its sequence in its stream.
    pub sequence: u64,
    /// When it was stored.
    pub stored_at: Timestamp,
}

/// Reads a message: parses its subject, expands its body, reads it in the dialect in which it is written, and completes
/// what its sender left out.
///
/// `fetch_payload` is given the envelope and its dialect, and returns the envelope with its payload, wherever that is.
pub async fn read_message<F: Future<Output = Result<Envelope, Error>>>(
    subjects: &SubjectSpace,
    message: &StoredMessage<'_>,
    fetch_payload: impl FnOnce(Envelope, Dialect) -> F,
) -> Result<Envelope, Error> {
    let subject = parse_subject(subjects, message.subject)?;
    let body = plain(message.body, message.headers)?;
    let (envelope, written_in) = dialect::read(&body, declared(message.headers)?, &subject)?;
    let envelope = envelope.completed(message.sequence, message.stored_at);
    fetch_payload(envelope, written_in).await
}

/// A subject as `S`, or why it is none.
pub fn parse_subject<S: SubjectForm>(subjects: &SubjectSpace, subject: &str) -> Result<S, Fault> {
    subjects.parse(subject).map_err(|error| {
        let source = std::error::Error::source(&error);
        let source = source.map_or_else(String::new, |source| format!(" {source}"));
        Fault::invalid(
            "",
            format!("The subject {error}{source}."),
            "Publish on <prefix>.v1.msg.<case>.<from>.<to>.<type>; see docs/subjects.md.",
        )
    })
}
