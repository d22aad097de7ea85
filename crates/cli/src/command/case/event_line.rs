//! Messages and events as they are printed: on one line each, or as JSON.

use concord_events::Aggregate;
use concord_events::subject::{AnySubject, SystemSubject};
use concord_wire::header::DIALECT;
use concord_wire::subject::Subject;
use concord_wire::{Dialect, Timestamp, dialect};
use serde::Serialize;
use serde_json::Value;

use crate::shared::output::{BAD, DOUBTFUL, FAINT, GOOD, NAMED, PLAIN, one_line, styled};
use crate::shared::stream_reader::StreamMessage;

/// At most so many characters of a message are shown.
const SENTENCE: usize = 110;

/// A message or event as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct EventLine {
    /// The time at which the broker stored it.
    pub(super) stored_at: Timestamp,
    /// Its sequence in its stream.
    pub(super) sequence: u64,
    /// Its subject.
    pub(super) subject: String,
    /// The dialect of the message, where that is not the canonical one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<Dialect>,
    /// The envelope or the stored event; a string where the body is no JSON.
    pub(super) body: Value,
    /// The body of a message in another dialect, as its sender wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<Value>,
}

impl EventLine {
    /// Reads a stored message; `subject` is its parsed subject, where it can be parsed.
    pub(super) fn new(stored: &StreamMessage, subject: Option<&AnySubject>) -> Self {
        let written = serde_json::from_slice(&stored.payload).unwrap_or_else(|_| {
            Value::String(String::from_utf8_lossy(&stored.payload).into_owned())
        });
        let (dialect, body, original) = match subject.and_then(|subject| match subject {
            AnySubject::Agents(subject) => translated(stored, subject),
            AnySubject::System(_) => None,
        }) {
            Some((dialect, envelope)) => (Some(dialect), envelope, Some(written)),
            None => (None, written, None),
        };
        let subject = stored.subject.clone();
        Self {
            stored_at: stored.at,
            sequence: stored.sequence,
            subject,
            dialect,
            body,
            original,
        }
    }

    /// One line of text; `subject` is the parsed subject, where it can be parsed.
    pub(super) fn text(&self, subject: Option<&AnySubject>) -> String {
        let at = self.stored_at.to_string();
        // The day is that of the case; what matters here is the time within it.
        let at = styled(FAINT, at.get(11..23).unwrap_or(&at));
        let rest = match subject {
            Some(AnySubject::Agents(Subject::Message { from, to, kind, .. })) => {
                let round = self
                    .body
                    .get("round")
                    .and_then(Value::as_u64)
                    .filter(|round| *round > 0);
                let round = round.map_or(String::new(), |round| format!(" (round {round})"));
                let text = message_text(
                    kind.as_str(),
                    self.body.get("payload").unwrap_or(&Value::Null),
                );
                let style = match kind.as_str() {
                    "error" => BAD,
                    "disagreement" => DOUBTFUL,
                    "agreement" | "revision" => GOOD,
                    _ => PLAIN,
                };
                format!(
                    "{} -> {to} {}{round}: {text}",
                    styled(NAMED, from),
                    styled(style, kind)
                )
            }
            Some(AnySubject::System(SystemSubject::Event {
                aggregate,
                id,
                event: name,
            })) => {
                let event_text =
                    event_text(*aggregate, self.body.get("data").unwrap_or(&Value::Null));
                format!(
                    "{} {}",
                    styled(FAINT, format!("* {aggregate} {id} {name}")),
                    event_text
                )
                .trim_end()
                .to_owned()
            }
            _ => format!(
                "{}: {}",
                self.subject,
                one_line(&self.body.to_string(), SENTENCE)
            ),
        };
        format!("{at} {rest}\n")
    }
}

/// The dialect of a message that is not in the canonical one, and the message as an envelope.
fn translated(stored: &StreamMessage, subject: &Subject) -> Option<(Dialect, Value)> {
    let declared = Dialect::parse(stored.header(DIALECT));
    let (envelope, spoken) = dialect::read(&stored.payload, declared, subject).ok()?;
    if spoken == Dialect::Concord {
        return None;
    }
    Some((
        spoken,
        serde_json::to_value(envelope.completed(stored.sequence, stored.at)).ok()?,
    ))
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The main contents of a message, by its type.
fn message_text(kind: &str, payload: &Value) -> String {
    let text = match kind {
        "finding" | "finding_with_precedent" => text_at(payload, "/summary").to_owned(),
        "task_assignment" => {
            format!(
                "{} {}",
                text_at(payload, "/task/type"),
                text_at(payload, "/task/title")
            )
        }
        "question" => format!(
            "{} - you hold: {}",
            text_at(payload, "/conflict/topic"),
            text_at(payload, "/your_position/position")
        ),
        "agreement" | "disagreement" | "revision" => {
            let words = [
                text_at(payload, "/revised_position"),
                text_at(payload, "/reasoning"),
            ];
            words
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" - ")
        }
        "notification" => format!(
            "{} {}",
            text_at(payload, "/event"),
            brief(payload.get("data"))
        ),
        "request" => format!(
            "{} {}",
            text_at(payload, "/action"),
            text_at(payload, "/parameters/conflict/topic")
        ),
        "response" => format!(
            "{} {}",
            text_at(payload, "/status"),
            brief(payload.get("result"))
        ),
        "error" => format!(
            "{} at {:?}: {}",
            text_at(payload, "/error_code"),
            text_at(payload, "/details/pointer"),
            text_at(payload, "/error_message")
        ),
        _ => brief(Some(payload)),
    };
    one_line(&text, SENTENCE)
}

/// Short values of an object, so that a large one does not hide what matters.
fn brief(value: Option<&Value>) -> String {
    let Some(fields) = value.and_then(Value::as_object) else {
        return value
            .filter(|value| !value.is_null())
            .map(Value::to_string)
            .unwrap_or_default();
    };
    let short = fields.iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some(format!("{name}={text}")),
        Value::Number(_) | Value::Bool(_) => Some(format!("{name}={value}")),
        _ => None,
    });
    short.collect::<Vec<_>>().join(" ")
}

/// The main contents of an event.
fn event_text(aggregate: Aggregate, data: &Value) -> String {
    let lists = ["debated", "deferred", "missing"];
    let counts = lists
        .iter()
        .filter_map(|name| Some((name, data.get(name)?.as_array()?.len())));
    let mut parts: Vec<String> = counts
        .map(|(name, number)| format!("{name}={number}"))
        .collect();
    for pointer in [
        "/received/agent_id",
        "/last/agent_id",
        "/name",
        "/topic",
        "/conflict/topic",
        "/outcome/status",
        "/observation/domain",
        "/precedent/topic",
    ] {
        let text = text_at(data, pointer);
        if !text.is_empty() {
            parts.push(text.to_owned());
        }
    }
    if aggregate == Aggregate::Case {
        let reason = text_at(data, "/decision/reason");
        if !reason.is_empty() {
            parts.push(reason.to_owned());
        }
    }
    one_line(&parts.join(", "), SENTENCE)
}
