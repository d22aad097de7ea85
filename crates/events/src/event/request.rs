//! Facts of requests between agents: each is opened once and ends once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events;
use crate::Aggregate;
use concord_wire::error_code::ErrorCode;
use concord_wire::id::{AgentId, CaseId, MessageId, Recipient};
use concord_wire::payload::ResponseStatus;
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a request.
    RequestEvent of Aggregate::Request;
    Opened(RequestOpened) = "opened", effects: false, deadlines: true,
        "An agent has asked another for something and waits for the answer.";
    HeardEarly(HeardAnswer) = "heard_early", effects: false, deadlines: false,
        "An acknowledgement or answer was read before the request that it is for.";
    Acknowledged(RequestAcknowledged) = "acknowledged", effects: false, deadlines: true,
        "Whoever is asked has said that it will answer later.";
    Answered(RequestAnswered) = "answered", effects: true, deadlines: true,
        "The request was answered, by a response or an error of whoever was asked.";
    Failed(RequestFailed) = "failed", effects: true, deadlines: true,
        "The request ended without an answer; its sender is told why.";
    AnsweredLate(RequestAnsweredLate) = "answered_late", effects: false, deadlines: false,
        "An answer came when the request had ended; it is recorded and changes nothing.";
}

/// Contents of `opened`, and the beginning of `failed` for a request that could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestOpened {
    /// `message_id` of the request, which its answer carries as `correlation_id`.
    pub request_id: MessageId,
    /// Who asks.
    pub from: AgentId,
    /// Who is asked; `_any` for whoever answers first.
    pub to: Recipient,
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// What for.
    pub action: String,
    /// When the broker stored it.
    pub asked_at: Timestamp,
    /// Where in its stream.
    pub sequence: u64,
    /// Whether that is the stream of urgent messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// Until when an answer counts.
    pub due: Timestamp,
    /// Until when it must be acknowledged, where the answer may take long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledge_due: Option<Timestamp>,
    /// Where the completion is posted to, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Digest of who asked what, to tell a repetition from another request under the same id.
    pub digest: String,
}

impl RequestEvent {
    /// The request, where the fact repeats it.
    pub fn request(&self) -> Option<&RequestOpened> {
        match self {
            Self::Opened(opened) => Some(opened),
            Self::Answered(answered) => Some(&answered.request),
            Self::Failed(failed) => Some(&failed.request),
            Self::HeardEarly(_) | Self::Acknowledged(_) | Self::AnsweredLate(_) => None,
        }
    }
}

impl RequestOpened {
    /// Whether it is acknowledged at once and completed later.
    pub fn is_asynchronous(&self) -> bool {
        self.acknowledge_due.is_some()
    }
}

/// Contents of `acknowledged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestAcknowledged {
    /// Who has.
    pub by: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// When the broker stored it.
    pub at: Timestamp,
}

/// In what form an answer came.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// An `acknowledgement`: the answer comes later.
    Acknowledgement,
    /// A `response`.
    Response,
    /// An `error`.
    Error,
    /// A `notification` with the request's id as its `correlation_id`.
    Notification,
}

/// An answer that was heard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardAnswer {
    /// Whose.
    pub by: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// In what form.
    pub form: AnswerForm,
    /// When the broker stored it.
    pub at: Timestamp,
    /// How it ended, where a response says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    /// The code, where it is an error with a known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// What it says, for the callback; none where it was too large to repeat.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
}

impl HeardAnswer {
    /// An acknowledgement.
    pub fn acknowledgement(by: AgentId, message_id: MessageId, at: Timestamp) -> Self {
        let (form, payload) = (AnswerForm::Acknowledgement, Value::Null);
        Self {
            by,
            message_id,
            form,
            at,
            status: None,
            error_code: None,
            payload,
        }
    }

    /// Whether it says no more than that the answer comes later.
    pub fn is_acknowledgement(&self) -> bool {
        self.form == AnswerForm::Acknowledgement
    }
}

/// Contents of `answered`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestAnswered {
    /// The request.
    pub request: RequestOpened,
    /// The answer.
    pub answer: HeardAnswer,
    /// How long after the request, in milliseconds.
    pub took_ms: u64,
}

/// Contents of `failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFailed {
    /// The request.
    pub request: RequestOpened,
    /// Why, as a code.
    pub error_code: ErrorCode,
    /// Place in the request that is wrong, where that is the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Why, as a sentence.
    pub why: String,
    /// What to do about it.
    pub recovery_suggestions: Vec<String>,
}

/// Contents of `answered_late`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestAnsweredLate {
    /// The answer, without its contents.
    pub answer: HeardAnswer,
    /// How long after the request was due, in milliseconds; 0 where it had ended otherwise.
    pub late_ms: u64,
}
