//! The dialects of agents and compressed bodies: how messages in them are recognised, compared and written.

use std::borrow::Cow;

use async_nats::HeaderMap;
use concord_wire::payload::ErrorReport;
use concord_wire::subject::Subject;
use concord_wire::{
    Dialect, Envelope, Fault, MessageType, Priority, Recipient, Timestamp, dialect, header,
};

use crate::broker::Broker;

/// The headers of a message that services read.
const READ: [&str; 4] = [
    header::DIALECT,
    header::CONTENT_ENCODING,
    header::TRACEPARENT,
    header::TRACESTATE,
];

/// The dialect that the headers of a message declare.
pub(crate) fn declared(headers: Option<&HeaderMap>) -> Result<Option<Dialect>, Fault> {
    Dialect::declared(
        headers
            .and_then(|headers| headers.get(header::DIALECT))
            .map(|value| value.as_str()),
    )
}

/// The body of a message as it was written before it was compressed, if it was. Everything that reads messages reads them
/// through this.
pub fn plain<'a>(body: &'a [u8], headers: Option<&HeaderMap>) -> Result<Cow<'a, [u8]>, Fault> {
    let encoding = headers.and_then(|headers| headers.get(header::CONTENT_ENCODING));
    concord_encoding::plain(body, encoding.map(|value| value.as_str()))
}

/// The headers that say how to read a message and which trace it belongs to, of a block of headers as the broker describes it.
pub(crate) fn headers_of(block: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let lines = std::str::from_utf8(block).ok()?.lines();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if READ.contains(&name) && headers.get(name).is_none() {
            headers.insert(name, value.trim());
        }
    }
    Some(headers)
}

/// Whether two bodies on one subject are the same message, each in a dialect of its own and at a time of its own: a message
/// that is published a second time, after a crash before the acknowledgement, has a later time.
pub fn is_same(one: &[u8], other: &[u8], subject: &Subject) -> bool {
    let read = |bytes| {
        let (mut read, _) = dialect::read(bytes, None, subject).ok()?;
        read.timestamp = Timestamp::default();
        serde_json::to_vec(&read).ok()
    };
    one == other || read(one).is_some_and(|one| Some(one) == read(other))
}

/// The dialect in which the sender of a message is to be answered, however wrong the message is: the one that it declares,
/// else that of the sender's card, else the one that its body looks like.
pub(crate) fn to_answer_in(
    headers: Option<&HeaderMap>,
    body: &[u8],
    subject: Option<&Subject>,
    by_card: impl FnOnce() -> Option<Dialect>,
) -> Dialect {
    let declared = declared(headers).ok().flatten().or_else(by_card);
    let seen = || {
        let body = plain(body, headers).ok()?;
        subject.map(|subject| dialect::of_shape(&body, subject))
    };
    declared.or_else(seen).unwrap_or_default()
}

/// The dialect of a message's recipient.
pub(crate) fn of_recipient(broker: &Broker, envelope: &Envelope) -> Dialect {
    match &envelope.to_agent {
        Recipient::Agent(agent) => broker.dialect_of(agent).unwrap_or_default(),
        // What is for several is in the one form that all of them can be told apart by.
        Recipient::All | Recipient::Any => Dialect::Concord,
    }
}

/// A message in a dialect: its subject and its bytes. What the dialect has no words for becomes an `error` under the same id
/// that says so.
pub(crate) fn write(
    envelope: &Envelope,
    spoken: Dialect,
) -> Result<(Subject, Vec<u8>), serde_json::Error> {
    if spoken == Dialect::Concord {
        return Ok((envelope.subject(), serde_json::to_vec(envelope)?));
    }
    let fault = match dialect::write(envelope, spoken) {
        Ok(bytes) => return Ok((envelope.subject(), bytes)),
        Err(fault) => fault,
    };
    let error = unsaid(envelope, spoken, &fault)?;
    let bytes = dialect::write(&error, spoken).or_else(|_| serde_json::to_vec(&error));
    Ok((error.subject(), bytes?))
}

/// The error in place of a message that the dialect of its recipient has no words for.
fn unsaid(
    envelope: &Envelope,
    spoken: Dialect,
    fault: &Fault,
) -> Result<Envelope, serde_json::Error> {
    let mut report = ErrorReport::from(fault);
    let kind = &envelope.message_type;
    report.error_message = format!(
        "A {kind} for you cannot be said in the dialect {spoken}: {}",
        fault.message
    );
    report
        .details
        .insert("message_id".into(), envelope.message_id.as_str().into());
    report
        .details
        .insert("message_type".into(), kind.as_str().into());
    Ok(Envelope {
        message_type: MessageType::Error,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload: serde_json::value::to_raw_value(&report)?,
        metadata: concord_wire::Metadata {
            version: Some("1.0".into()),
            ..Default::default()
        },
        extensions: concord_wire::Extensions::default(),
        ..envelope.clone()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_dialect_cannot_say_is_an_error_that_names_it() {
        let finding = json!({
            "message_id": "m-1", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "coordinator", "to_agent": "ann",
            "message_type": "finding", "priority": "critical", "payload": { "summary": "x", "riskScore": 1 },
        });
        let finding: Envelope = serde_json::from_value(finding).unwrap();
        let (subject, bytes) = write(&finding, Dialect::Panel).unwrap();
        assert_eq!(
            concord_wire::subject::SubjectSpace::default().build(&subject),
            "concord.v1.msg._.coordinator.ann.error"
        );
        let (error, _) = dialect::read(&bytes, Some(Dialect::Panel), &subject).unwrap();
        let report: Value = error.payload().unwrap();
        assert_eq!(
            (error.message_id.as_str(), &report["details"]["pointer"]),
            ("m-1", &json!("/payload/riskScore"))
        );
        assert!(
            report["error_message"]
                .as_str()
                .unwrap()
                .contains("cannot be said in the dialect panel"),
            "{report}"
        );
    }

    #[test]
    fn what_is_said_again_later_is_the_same_and_what_says_something_else_is_not() {
        let error = |at: &str, message: &str| {
            let error = json!({
                "message_id": "msg-7-refused", "timestamp": at, "from_agent": "coordinator", "to_agent": "ann",
                "message_type": "error", "payload": { "error_code": "INVALID_REQUEST", "error_message": message },
            });
            serde_json::to_vec(&error).unwrap()
        };
        let subjects = concord_wire::subject::SubjectSpace::default();
        let subject = subjects
            .parse("concord.v1.msg._.coordinator.ann.error")
            .unwrap();
        let said = error("2026-01-01T00:00:00Z", "No.");
        assert!(is_same(
            &said,
            &error("2026-01-01T00:01:00Z", "No."),
            &subject
        ));
        assert!(!is_same(
            &said,
            &error("2026-01-01T00:00:00Z", "Yes."),
            &subject
        ));
        assert!(!is_same(&said, b"not JSON", &subject));
    }
}
