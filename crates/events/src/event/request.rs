//! Events of requests between agents: each is opened once and ends once.

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
    /// The agent that asks.
    pub from: AgentId,
    /// The agent that is asked; `_any` for whichever answers first.
    pub to: Recipient,
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The action that is asked for.
    pub action: String,
    /// The time at which the broker stored it.
    pub asked_at: Timestamp,
    /// Its sequence in its stream.
    pub sequence: u64,
    /// Whether that is the stream of urgent messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// The time until which an answer counts.
    pub due: Timestamp,
    /// The time until which it must be acknowledged, if the answer may take long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledge_due: Option<Timestamp>,
    /// The address that the completion is posted to, if the request has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Digest of who asked what, to tell a repetition from another request under the same id.
    pub digest: String,
}

impl RequestEvent {
    /// The request, if the event repeats it.
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
    /// The agent that acknowledged.
    pub by: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// The time at which the broker stored it.
    pub at: Timestamp,
}

/// The form of an answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// An `acknowledgement`: the answer comes later.
    Acknowledgement,
    /// A `response`, or a `task_result` or `refuse` in its place.
    Response,
    /// An `error`.
    Error,
    /// A `notification` with the request's id as its `correlation_id`.
    Notification,
}

/// An answer that was received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardAnswer {
    /// The agent that answered.
    pub by: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// The form of the answer.
    pub form: AnswerForm,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// The status, if a response has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    /// The code, where it is an error with a known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// The payload, for the callback; none if it was too large to repeat.
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
    /// The reason as a code.
    pub error_code: ErrorCode,
    /// Place in the request that is wrong, where that is the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// The reason as a sentence.
    pub why: String,
    /// How to correct it.
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
