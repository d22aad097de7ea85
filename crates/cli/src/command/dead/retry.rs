//! `concord dead retry`: sending originals again.

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use bytes::Bytes;
use concord_events::dead_letter::header;
use concord_events::subject::{AnySubject, SystemSubject};
use concord_events::topology::StreamKind;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::{Broker, service::clock};
use concord_wire::header as wire;
use concord_wire::subject::{Service, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use super::letter::letter;
use super::{Letter, RetryArgs, letters};
use crate::shared::connection::ask;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, FAINT, NAMED, styled};

/// The result for one letter.
#[derive(Debug, Serialize)]
struct Retried {
    sequence: u64,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Its reason, where that is none of those that are sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

pub(super) async fn run(broker: &Broker, args: &RetryArgs) -> Result<u8, Failure> {
    let mut report = Vec::new();
    match args.sequence {
        Some(sequence) => report.push(retried(broker, sequence).await?),
        None => {
            for letter in letters(broker).await?.all {
                if letter.about.retried.is_some() {
                    continue;
                }
                let is_meant = match args.reasons.as_slice() {
                    [] => letter.is_failure(),
                    named => named.iter().any(|reason| reason == letter.reason()),
                };
                report.push(if is_meant {
                    retried(broker, letter.about.sequence).await?
                } else {
                    left(letter)
                });
            }
        }
    }
    if args.json.json {
        output::json(&report)?;
    } else {
        output::print(&text(&report, args.reasons.is_empty()))?;
    }
    Ok(if report.iter().any(|retried| retried.error.is_some()) {
        FOUND
    } else {
        0
    })
}

/// Sends an original again that was not yet.
async fn retried(broker: &Broker, number: u64) -> Result<Retried, Failure> {
    let letter = letter(broker, number).await?;
    if let Some(at) = letter.about.retried {
        return Err(Failure::failed(format!(
            "dead letter {number} was sent again at {at}"
        )));
    }
    let error = retry(broker, &letter)
        .await
        .err()
        .map(|failure| failure.to_string());
    Ok(Retried {
        sequence: number,
        subject: letter.about.subject,
        error,
        left: None,
    })
}

fn left(letter: Letter) -> Retried {
    let left = Some(letter.reason().to_owned());
    Retried {
        sequence: letter.about.sequence,
        subject: letter.about.subject,
        error: None,
        left,
    }
}

fn text(report: &[Retried], only_failures: bool) -> String {
    let mut text = String::new();
    let mut left: BTreeMap<&str, u64> = BTreeMap::new();
    for retried in report {
        let number = styled(NAMED, retried.sequence);
        match (&retried.left, &retried.error) {
            (Some(reason), _) => *left.entry(reason).or_default() += 1,
            (None, None) => text.push_str(&format!("{number} sent again on {}\n", retried.subject)),
            (None, Some(error)) => text.push_str(&format!("{number} not sent again: {error}\n")),
        }
    }
    if text.is_empty() {
        text.push_str("There are no dead letters to send again.\n");
    }
    text + &left_out(&left, only_failures)
}

/// How many letters were left for which reasons, and how they are sent again all the same.
fn left_out(left: &BTreeMap<&str, u64>, only_failures: bool) -> String {
    if left.is_empty() {
        return String::new();
    }
    let counted = left
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"));
    let counted: Vec<String> = counted.collect();
    let why = if only_failures {
        "They were refused for what they are, which their senders were told; most would be refused again. "
    } else {
        ""
    };
    let reasons: Vec<&str> = left.keys().copied().collect();
    let note = format!(
        "{} left: {}. {why}`concord dead retry --all --reason {}` sends them all the same.",
        left.values().sum::<u64>(),
        counted.join(", "),
        reasons.join(",")
    );
    format!("{}\n", styled(FAINT, note))
}

/// Sends an original again and marks its letter. Each part can be repeated, so an interruption leaves nothing half done:
/// the marked copy is stored before the letter itself goes.
async fn retry(broker: &Broker, letter: &Letter) -> Result<(), Failure> {
    let about = &letter.about;
    match letter.notice(broker) {
        Some((channel, sequence)) => {
            // The event is not published again: the adapter reads it where it is stored, and answers when it has told somebody.
            let request = json!({ "channel": channel, "sequence": sequence });
            let _: Value = ask(broker, Service::AgentAdapter, "notify", &request).await?;
        }
        None => match letter.event(broker) {
            // Nor is any other: what its consumer does with it is done again.
            Some((service, sequence)) => {
                let request = json!({ "consumer": letter.about.consumer, "sequence": sequence });
                let _: Value = ask(broker, service, "redo", &request).await?;
            }
            None => publish_again(broker, letter).await?,
        },
    }
    let mut marked = letter.headers.clone();
    marked.insert(wire::MESSAGE_ID, format!("retried-{}", about.sequence));
    marked.insert(header::RETRIED, clock::now().to_string());
    publish(
        broker,
        letter.subject.clone(),
        marked,
        letter.payload.clone(),
    )
    .await?;
    let stream = broker.stream(StreamKind::Dead).await?;
    let deleted = stream.delete_message(about.sequence).await;
    deleted
        .map(|_| ())
        .map_err(|error| Failure::failed(format!("the letter could not be marked: {error}")))
}

async fn publish_again(broker: &Broker, letter: &Letter) -> Result<(), Failure> {
    let about = &letter.about;
    check(broker, letter)?;
    let original = letter.original(broker).await?;
    let number = about.sequence;
    let mut again = HeaderMap::new();
    // Not the original's own id, which the broker may remember and take for a duplicate.
    again.insert(
        wire::MESSAGE_ID,
        format!("retry-{}-{number}", letter.stream),
    );
    again.insert(header::RETRY_OF, number.to_string());
    for name in [
        wire::DIALECT,
        wire::CONTENT_ENCODING,
        wire::TRACEPARENT,
        wire::TRACESTATE,
    ] {
        if let Some(value) = letter.headers.get(name) {
            again.insert(name, value.clone());
        }
    }
    // The broker counts headers too. What leaves no room for them goes without; its own `message_id` makes a repetition
    // harmless.
    if bytes(&again) + original.len() > broker.client.max_payload() {
        again = HeaderMap::new();
        // But for that without which it cannot be read.
        if let Some(value) = letter.headers.get(wire::CONTENT_ENCODING) {
            again.insert(wire::CONTENT_ENCODING, value.clone());
        }
    }
    publish(broker, about.subject.clone(), again, original).await
}

/// Refuses to publish anything again but messages and due timers.
fn check(broker: &Broker, letter: &Letter) -> Result<(), Failure> {
    let subject = &letter.about.subject;
    match broker.subjects().parse(subject) {
        Ok(
            AnySubject::Agents(Subject::Message { .. })
            | AnySubject::System(SystemSubject::TimerDue { .. }),
        ) => Ok(()),
        Ok(AnySubject::System(SystemSubject::Event { .. })) => Err(Failure::failed(
            "it is an event, and its letter does not say which consumer has given it up",
        )),
        _ => Err(Failure::failed(format!(
            "{subject:?} is no subject that a service reads; correct the sender"
        ))),
    }
}

/// Size of a header block as it is sent.
fn bytes(headers: &HeaderMap) -> usize {
    let lines = headers
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let lines: usize = lines
        .map(|(name, value)| {
            AsRef::<str>::as_ref(name).len() + value.as_str().len() + ": \r\n".len()
        })
        .sum();
    "NATS/1.0\r\n\r\n".len() + lines
}

async fn publish(
    broker: &Broker,
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
) -> Result<(), Failure> {
    let sent = broker.publish_as_it_is(subject, headers, payload).await;
    sent.map_err(|error| Failure::failed(ErrorChain(&error).to_string()))
}
