//! What stands where facts and deadlines do, and was written by nobody who may write there.
//!
//! The broker asks whether a user may publish on a subject, but not whether it may name the *reply* subject to which the
//! broker then sends its acknowledgement, nor where it sends a copy that a direct get asked for. So whoever may publish
//! anything can have such a word of the broker stored anywhere. It is no fact, and readers of facts pass it over; see
//! `docs/adr/0035`. Whatever else cannot be read is an error as before.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// With this header the broker says from which stream a message is a copy. No service writes it.
pub const COPIED_FROM: &str = "Nats-Stream";

/// How every fact begins, so that one need not be read to see that it is one.
const FACT: &[u8] = br#"{"fact":"#;

/// A word of the broker that is stored where it does not belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// The acknowledgement of another message, or its refusal.
    Acknowledgement,
    /// A copy of a stored message, whatever that says.
    Copy,
}

impl Foreign {
    /// What a stored message is, if it is foreign; `copied` when it has the header [`COPIED_FROM`].
    pub fn of(copied: bool, body: &[u8]) -> Option<Self> {
        if copied {
            return Some(Self::Copy);
        }
        is_acknowledgement(body).then_some(Self::Acknowledgement)
    }

    /// What it is, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgement => "the broker's acknowledgement of another message",
            Self::Copy => "a copy of another message",
        }
    }
}

/// The broker's answer to a message that was to be stored, and what tells a fact from it.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    stream: Option<std::borrow::Cow<'a, str>>,
    seq: Option<u64>,
    error: Option<Refusal>,
    fact: Option<IgnoredAny>,
    event_id: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Refusal {
    code: u16,
}

/// Whether a body is the broker's acknowledgement or refusal of a message.
pub fn is_acknowledgement(body: &[u8]) -> bool {
    if body.starts_with(FACT) {
        return false;
    }
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) else {
        return false;
    };
    let stored = answer.stream.is_some() && answer.seq.is_some();
    let refused = answer.error.is_some_and(|refusal| refusal.code >= 400);
    (stored || refused) && answer.fact.is_none() && answer.event_id.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, EventMeta};

    /// As nats-server 2.15.1 writes them.
    const ANSWERS: [&str; 3] = [
        r#"{"stream":"CONCORD_MESSAGES","seq":6}"#,
        r#"{"stream":"CONCORD_MESSAGES","seq":13,"duplicate": true}"#,
        r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 12"},"stream":"M","seq":0}"#,
    ];

    #[test]
    fn the_brokers_answers_are_foreign_and_nothing_else_is() {
        for body in ANSWERS {
            assert_eq!(
                Foreign::of(false, body.as_bytes()),
                Some(Foreign::Acknowledgement),
                "{body}"
            );
            assert!(
                matches!(EventMeta::decode(body.as_bytes()), Err(Error::Foreign)),
                "{body}"
            );
        }
        for body in [
            "",
            "{}",
            "no JSON",
            r#"["stream", 6]"#,
            r#"{"stream":"CONCORD_MESSAGES"}"#,
            r#"{"error":"it failed"}"#,
            r#"{"fact":"opened"}"#,
            r#"{"stream":"M","seq":6,"fact":"opened","event_id":"e"}"#,
        ] {
            assert_eq!(Foreign::of(false, body.as_bytes()), None, "{body}");
            assert!(
                matches!(EventMeta::decode(body.as_bytes()), Err(Error::Json(_))),
                "{body}"
            );
        }
        assert_eq!(
            Foreign::of(true, br#"{"fact":"opened"}"#),
            Some(Foreign::Copy)
        );
    }
}
