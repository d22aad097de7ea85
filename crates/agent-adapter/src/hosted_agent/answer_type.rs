//! The type of an answer that does not say its type: some dialects have a single word for all answers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use concord_wire::{Envelope, MessageType};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::hosted_agent::openai::AnswerForm;

/// Bytes of the digest by which a position is recognized.
const DIGEST_BYTES: usize = 12;

/// The kind of message that answers a message. It travels in the addresses of later answers, so it is short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExpectedAnswer {
    /// The answer to a task.
    Finding,
    /// The answer to a challenge, and the opinion of a mediator.
    Evidence,
    /// The answer to a question outside a debate.
    Clarification,
    /// The answer to a question in a debate, with the digest of the position that the agent holds.
    Position(String),
    /// The answer to any other message.
    #[default]
    Response,
}

/// The fields of an answer in a debate that decide its type.
#[derive(Deserialize)]
struct DebateAnswer {
    #[serde(default)]
    agrees_with_peer: Option<bool>,
    #[serde(default)]
    revised_position: Option<String>,
}

impl ExpectedAnswer {
    /// The kind of answer that a message asks for.
    pub(crate) fn of(incoming: &Envelope) -> Self {
        match AnswerForm::of(incoming) {
            AnswerForm::InDebate(question) => {
                Self::Position(digest(&question.your_position.position))
            }
            AnswerForm::Clarification => Self::Clarification,
            AnswerForm::Finding => Self::Finding,
            AnswerForm::Evidence => Self::Evidence,
            // Which of the answers to a task it is, `TaskAnswer` says.
            AnswerForm::OfTask(_) | AnswerForm::Response => Self::Response,
        }
    }

    /// The type of an answer with this payload. In a debate, an answer that neither agrees nor names another position keeps
    /// the agent's own position.
    pub(crate) fn kind(&self, payload: &RawValue) -> MessageType {
        match self {
            Self::Finding => MessageType::Finding,
            Self::Evidence => MessageType::Evidence,
            Self::Clarification => MessageType::Clarification,
            Self::Response => MessageType::Response,
            Self::Position(own) => {
                let answer: Option<DebateAnswer> = serde_json::from_str(payload.get()).ok();
                let agrees = answer.as_ref().and_then(|answer| answer.agrees_with_peer);
                let revised = answer
                    .and_then(|answer| answer.revised_position)
                    .filter(|text| !text.trim().is_empty());
                in_debate(agrees, revised.is_some_and(|text| digest(&text) != *own))
            }
        }
    }
}

/// The type of an answer in a debate. `changed` says whether it names another position than before.
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
