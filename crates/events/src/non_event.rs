//! Messages of the broker that are stored among events and deadlines although nobody with the right to write there sent them.
//!
//! The broker asks whether a user may publish on a subject, but not whether it may name the *reply* subject to which the
//! broker then sends its acknowledgement, nor where it sends a copy that a direct get asked for. So whoever may publish
//! anything can have such a message of the broker stored anywhere. It is no event, and readers of events skip it; see
//! `docs/adr/0035`. Anything else that cannot be read is an error.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// With this header the broker says from which stream a message is a copy. No service writes it.
pub const COPIED_FROM: &str = "Nats-Stream";

/// How every stored event begins, so that it need not be parsed to see that it is one.
const EVENT_START: &[u8] = br#"{"fact":"#;

/// A message of the broker that is stored among events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonEvent {
    /// The acknowledgement of another message, or its refusal.
    Acknowledgement,
    /// A copy of a stored message, whatever that says.
    Copy,
}

impl NonEvent {
    /// What a stored message is, if it is no event; `copied` says whether it has the header [`COPIED_FROM`].
    pub fn of(copied: bool, body: &[u8]) -> Option<Self> {
        if copied {
            return Some(Self::Copy);
        }
        is_acknowledgement(body).then_some(Self::Acknowledgement)
    }

    /// What it is, as part of a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgement => "the broker's acknowledgement of another message",
            Self::Copy => "a copy of another message",
        }
    }
}

/// The broker's answer to a message that was to be stored, with the fields that only an event has.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    stream: Option<std::borrow::Cow<'a, str>>,
    seq: Option<u64>,
    error: Option<Refusal>,
    #[serde(rename = "fact")]
    event_name: Option<IgnoredAny>,
    event_id: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Refusal {
    code: u16,
}

/// Whether a body is the broker's acknowledgement or refusal of a message, or its answer to an acknowledgement, which is empty.
pub fn is_acknowledgement(body: &[u8]) -> bool {
    // So it answers whoever acknowledges a delivery and asks for an answer. Whatever services store has a body.
    if body.is_empty() {
        return true;
    }
    if body.starts_with(EVENT_START) {
        return false;
    }
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) else {
        return false;
    };
    let stored = answer.stream.is_some() && answer.seq.is_some();
    let refused = answer.error.is_some_and(|refusal| refusal.code >= 400);
    (stored || refused) && answer.event_name.is_none() && answer.event_id.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, EventMeta};

    /// As nats-server 2.15.1 writes them.
    const ANSWERS: [&str; 4] = [
        "",
        r#"{"stream":"CONCORD_MESSAGES","seq":6}"#,
        r#"{"stream":"CONCORD_MESSAGES","seq":13,"duplicate": true}"#,
        r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 12"},"stream":"M","seq":0}"#,
    ];

    #[test]
    fn the_brokers_answers_are_no_events_and_everything_else_may_be_one() {
        for body in ANSWERS {
            assert_eq!(
                NonEvent::of(false, body.as_bytes()),
                Some(NonEvent::Acknowledgement),
                "{body}"
            );
            assert!(
                matches!(EventMeta::decode(body.as_bytes()), Err(Error::NonEvent)),
                "{body}"
            );
        }
        for body in [
            "{}",
            "no JSON",
            r#"["stream", 6]"#,
            r#"{"stream":"CONCORD_MESSAGES"}"#,
            r#"{"error":"it failed"}"#,
            r#"{"fact":"opened"}"#,
            r#"{"stream":"M","seq":6,"fact":"opened","event_id":"e"}"#,
        ] {
            assert_eq!(NonEvent::of(false, body.as_bytes()), None, "{body}");
            assert!(
                matches!(EventMeta::decode(body.as_bytes()), Err(Error::Json(_))),
                "{body}"
            );
        }
        assert_eq!(
            NonEvent::of(true, br#"{"fact":"opened"}"#),
            Some(NonEvent::Copy)
        );
    }
}
