//! Requests, responses and errors: the specification's general exchange.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::action::check_action;
use super::expert::is_web_address;
use super::{check_name, shortened};
use crate::envelope::{Envelope, from_json};
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::timestamp::Timestamp;

/// The payload of `request`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The action that is asked for, for example `open_case`.
    pub action: String,
    /// The parameters of the action.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub parameters: Value,
    /// Context for the action, in any form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// Constraints on the action, in any form.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub constraints: Map<String, Value>,
    /// The time until which an answer is of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The address that the completion is posted to. A request with a callback is acknowledged at once and completed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
}

/// A request whose parameters are still as they were written.
#[derive(Deserialize)]
struct UnreadRequest {
    #[serde(rename = "action")]
    _action: String,
    #[serde(default)]
    parameters: Option<Box<RawValue>>,
    // The rest is what it must be, and is not kept.
    #[serde(default, rename = "context")]
    _context: IgnoredAny,
    #[serde(default, rename = "constraints")]
    _constraints: BTreeMap<String, IgnoredAny>,
    #[serde(default, rename = "deadline")]
    _deadline: Option<Timestamp>,
    #[serde(default, rename = "callback_url")]
    _callback_url: Option<String>,
}

/// The parameters of a request as what its action needs, those that are missing read like `null`; the fault's pointer begins with
/// `/payload`. As values of any form they would take many times their bytes: a list of digits sixteen times.
pub fn parameters_of<T: DeserializeOwned>(message: &Envelope) -> Result<T, Fault> {
    let request: UnreadRequest = message.payload()?;
    let written = request.parameters.as_deref().map_or("null", RawValue::get);
    from_json(written.as_bytes(), "/payload/parameters")
}

/// The action that a request asks for. Nothing else of it is read: most requests are for somebody else than who looks.
pub fn action_of(message: &Envelope) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Asked {
        action: String,
    }
    message.payload::<Asked>().map(|asked| asked.action)
}

impl Request {
    /// Checks what can be checked without knowing who is asked; the pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.action.trim().is_empty() {
            return Err(Fault::invalid(
                "/payload/action",
                "It is blank.",
                "Say what is to be done.",
            ));
        }
        check_name("/payload/action", &self.action)?;
        if let Some(url) = self
            .callback_url
            .as_deref()
            .filter(|url| !is_web_address(url))
        {
            return Err(Fault::invalid(
                "/payload/callback_url",
                format!("{:?} is no address that can be called.", shortened(url)),
                "Write it as https://example.org/path.",
            ));
        }
        check_action(&self.action, &self.parameters, "/payload/parameters")
    }
}

/// The status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// Done.
    Success,
    /// Not done.
    Failure,
    /// Done in part.
    Partial,
}

/// The payload of `response`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The result.
    pub status: ResponseStatus,
    /// The result.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub result: Value,
    /// What went wrong, as sentences.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Warnings, as sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The payload of `error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// Stable code; see `docs/errors.md`.
    pub error_code: ErrorCode,
    /// What is wrong, as a sentence.
    pub error_message: String,
    /// `pointer` (JSON pointer into the refused message), `subject` and `message_id` where known.
    #[serde(default)]
    pub details: Map<String, Value>,
    /// How to correct it, as sentences.
    #[serde(default)]
    pub recovery_suggestions: Vec<String>,
}

/// The detail `limit` of an error about a message that was not worked on because its sender sends too many. With `refused`
/// and `last_sequence` it is about so many of the sender's messages, from the one it names to that place in the stream.
pub const RATE_LIMIT: &str = "agent_rate";

impl From<&Fault> for ErrorReport {
    fn from(fault: &Fault) -> Self {
        let mut details = Map::new();
        details.insert("pointer".into(), Value::String(fault.pointer.clone()));
        Self {
            error_code: fault.code,
            error_message: fault.message.clone(),
            details,
            recovery_suggestions: vec![fault.advice.clone()],
        }
    }
}
