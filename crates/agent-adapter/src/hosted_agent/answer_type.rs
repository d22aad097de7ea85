//! The type of an answer that does not say its type: some dialects have a single word for all answers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use concord_wire::payload::Answer;
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

/// A message that only some types of message answer. It travels like [`ExpectedAnswer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answerable {
    /// The task of a case.
    Task,
    /// A question in a debate.
    Debate,
    /// A question outside a debate.
    Question,
    Challenge,
    /// A request for the opinion of a mediator; agents may ask for one, too.
    Mediation,
    Request,
}

/// The types that answer one message and not another. Of another type than is asked for they would be published, and whoever asked would
/// wait in vain. Every other type says something by itself: that there is no answer, that the work is handed on, or what happened.
const ANSWERS: [MessageType; 9] = [
    MessageType::Finding,
    MessageType::FindingWithPrecedent,
    MessageType::Agreement,
    MessageType::Disagreement,
    MessageType::Revision,
    MessageType::Evidence,
    MessageType::Response,
    MessageType::TaskResult,
    MessageType::Bid,
];

impl Answerable {
    /// What a message is. None where anything may be said to it.
    pub(crate) fn of(incoming: &Envelope) -> Option<Self> {
        match (&incoming.message_type, AnswerForm::of(incoming)) {
            (_, AnswerForm::OfTask(_)) => None,
            (_, AnswerForm::InDebate(_)) => Some(Self::Debate),
            (MessageType::TaskAssignment, _) => Some(Self::Task),
            (MessageType::Question, _) => Some(Self::Question),
            (MessageType::Challenge, _) => Some(Self::Challenge),
            (MessageType::Request, AnswerForm::Evidence) => Some(Self::Mediation),
            (MessageType::Request, _) => Some(Self::Request),
            _ => None,
        }
    }

    fn types(self) -> &'static [MessageType] {
        use MessageType as T;
        match self {
            Self::Task => &[T::Finding, T::FindingWithPrecedent],
            Self::Debate => &[T::Agreement, T::Disagreement, T::Revision, T::Evidence],
            Self::Question => &[
                T::Clarification,
                T::Response,
                T::Agreement,
                T::Disagreement,
                T::Revision,
                T::Evidence,
            ],
            Self::Challenge => &[T::Evidence, T::Agreement, T::Disagreement, T::Revision],
            Self::Mediation => &[T::Evidence, T::Response, T::TaskResult],
            Self::Request => &[T::Response, T::TaskResult],
        }
    }

    /// Whether a message of this type may be the answer.
    pub(crate) fn may_be_answered_by(self, kind: &MessageType) -> bool {
        !ANSWERS.contains(kind) || self.types().contains(kind)
    }

    /// The types that answer it, for whoever has answered with another.
    pub(crate) fn named(self) -> String {
        let mut named: Vec<&str> = self.types().iter().map(MessageType::as_str).collect();
        named.push(MessageType::Error.as_str());
        named.join(", ")
    }
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
                let answer = Answer::read(payload).ok();
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
