//! Requests, responses and errors: the specification's general exchange.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
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
                "Write it as https://example.org/path, without a user name.",
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
    /// What went wrong, as sentences; anything else is read as its JSON.
    #[serde(default, deserialize_with = "sentences")]
    pub errors: Vec<String>,
    /// Warnings, as sentences; anything else is read as its JSON.
    #[serde(default, deserialize_with = "sentences")]
    pub warnings: Vec<String>,
}

/// What a payload with the form of a response has as its result: the fields of the answer itself, which specification 5 has there. None for a
/// payload of another form, and for one that says that it failed.
pub fn result_of(payload: &RawValue) -> Option<Box<RawValue>> {
    /// Fields that say how it went, and nothing of what was asked for.
    const BESIDE: [&str; 3] = ["status", "errors", "warnings"];
    // Most payloads are of another form, and some are large.
    if !payload.get().contains("\"result\"") {
        return None;
    }
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(payload.get()).ok()?;
    let result = fields.remove("result")?;
    let has_failed = fields.get("status").is_some_and(|status| {
        serde_json::from_str(status.get())
            .is_ok_and(|one: ResponseStatus| one == ResponseStatus::Failure)
    });
    let is_response = fields.keys().all(|name| BESIDE.contains(&name.as_str()));
    let is_said = serde_json::from_str(result.get())
        .is_ok_and(|one: BTreeMap<String, IgnoredAny>| !one.is_empty());
    (is_response && is_said && !has_failed).then_some(result)
}

/// Why an agent refuses what it was asked for, in the words of its `refuse`.
pub fn why_refused(refuse: &Envelope) -> String {
    let said: Map<String, Value> = refuse.payload().unwrap_or_default();
    let words = ["why", "reason", "content"].map(|name| said.get(name).and_then(Value::as_str));
    let why = words
        .into_iter()
        .flatten()
        .find(|why| !why.trim().is_empty());
    why.unwrap_or("It was refused.").to_owned()
}

/// Reads sentences as agents write them: the specification does not say what the elements of these lists are, and an answer that says that it
/// failed must not be lost over how it says why.
pub(super) fn sentences<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let sentence = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::Array(values) => values.into_iter().map(sentence).collect(),
        one => vec![sentence(one)],
    })
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

impl ErrorReport {
    /// The report in an error, whatever its form: a code that is not known here is kept in the text, and where there is neither code nor
    /// message the text is the payload.
    pub fn of(error: &Envelope) -> Self {
        let report = error.payload();
        report.unwrap_or_else(|_| Self::in_words(&error.payload().unwrap_or_default()))
    }

    /// Reads the report of a part of something, whatever its form; see [`Self::of`].
    pub(super) fn of_part<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        let payload = Option::<Map<String, Value>>::deserialize(deserializer)?;
        let report = |payload: Map<String, Value>| {
            let report = serde_json::from_value(Value::Object(payload.clone()));
            report.unwrap_or_else(|_| Self::in_words(&payload))
        };
        Ok(payload.map(report))
    }

    fn in_words(payload: &Map<String, Value>) -> Self {
        let text = |name: &str| payload.get(name).and_then(Value::as_str);
        let names = ["error_code", "error_message", "content"];
        let said: Vec<&str> = names.into_iter().filter_map(text).collect();
        let message = match said.as_slice() {
            [] => shortened(&serde_json::to_string(payload).unwrap_or_default()),
            said => said.join(": "),
        };
        let advice = "Ask the agent, or whoever runs it, what it means.";
        Self::from(&Fault::new(ErrorCode::InternalError, "", message, advice))
    }
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
