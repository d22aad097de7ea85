//! What an answer is when it says no more than that it is one: some dialects have a single word for all of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use concord_wire::{Envelope, MessageType};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::hosted_agent::openai::Form;

/// Bytes by which a position is known again.
const DIGEST_BYTES: usize = 12;

/// The kind of message that answers a message. It travels in the addresses of later answers, so it is short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expected {
    /// Of a task.
    Finding,
    /// Of a challenge, and of a mediator's opinion.
    Evidence,
    /// Of a question outside a debate.
    Clarification,
    /// Of a question in a debate; with the digest of the position that the agent holds.
    Position(String),
    /// Of all else.
    #[default]
    Response,
}

/// What is read of an answer in a debate.
#[derive(Deserialize)]
struct Held {
    #[serde(default)]
    agrees_with_peer: Option<bool>,
    #[serde(default)]
    revised_position: Option<String>,
}

impl Expected {
    /// By what was asked.
    pub(crate) fn of(asked: &Envelope) -> Self {
        match Form::of(asked) {
            Form::InDebate(question) => Self::Position(digest(&question.your_position.position)),
            Form::Clarification => Self::Clarification,
            Form::Finding => Self::Finding,
            Form::Evidence => Self::Evidence,
            Form::Response => Self::Response,
        }
    }

    /// The type of an answer with this payload. Of a debate, what neither agrees nor names another position stays with the
    /// agent's own.
    pub(crate) fn kind(&self, payload: &RawValue) -> MessageType {
        match self {
            Self::Finding => MessageType::Finding,
            Self::Evidence => MessageType::Evidence,
            Self::Clarification => MessageType::Clarification,
            Self::Response => MessageType::Response,
            Self::Position(own) => {
                let held: Option<Held> = serde_json::from_str(payload.get()).ok();
                let agrees = held.as_ref().and_then(|held| held.agrees_with_peer);
                let revised = held
                    .and_then(|held| held.revised_position)
                    .filter(|text| !text.trim().is_empty());
                in_debate(agrees, revised.is_some_and(|text| digest(&text) != *own))
            }
        }
    }
}

/// Which of the three an answer in a debate is.
pub(crate) fn in_debate(agrees: Option<bool>, changed: bool) -> MessageType {
    match agrees {
        Some(true) => MessageType::Agreement,
        _ if changed => MessageType::Revision,
        _ => MessageType::Disagreement,
    }
}

fn digest(position: &str) -> String {
    let digest = Sha256::digest(position.trim().as_bytes());
    URL_SAFE_NO_PAD.encode(digest.get(..DIGEST_BYTES).unwrap_or_default())
}
