//! Notifications about requests and conversations between agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::envelope::Envelope;
use crate::error_code::ErrorCode;
use crate::id::{AgentId, MessageId};
use crate::payload::{Remembered, ResponseStatus};
use crate::timestamp::Timestamp;

/// The data of `request_completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestCompleted {
    /// `message_id` of the request.
    pub request_id: MessageId,
    /// The action that was asked for.
    pub action: String,
    /// The agent that answered.
    pub by: AgentId,
    /// The status of the response; null where the answer was an error, or a response without a status.
    pub status: Option<ResponseStatus>,
    /// The code of the error; null where the answer was a response, or an error without a known code.
    pub error_code: Option<ErrorCode>,
    /// The time from the request to its answer, in milliseconds.
    pub took_ms: u64,
    /// The payload of the answer; null where it was too large to repeat.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub payload: Value,
}

/// The data of `woken`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Woken {
    /// The rule by which the agent is woken, for example `mention` or `semantic:<skill>`.
    pub reason: String,
    /// The probability that the message concerns the agent; null where no probability was needed.
    pub score: Option<f64>,
    /// The message in short.
    pub said: Remembered,
    /// The whole message, as an envelope; null where it was too large to repeat.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub message: Value,
    /// The messages before it in the same conversation, oldest first.
    pub context: Vec<Remembered>,
}

/// The data of `passed_on`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOn {
    /// The whole message: an envelope.
    pub message: Map<String, Value>,
}

impl PassedOn {
    /// The notification that passes `message` on.
    pub fn new(message: &Envelope) -> Result<Self, serde_json::Error> {
        let message = serde_json::from_str(&serde_json::to_string(message)?)?;
        Ok(Self { message })
    }
}

/// The data of `loop_broken`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopBroken {
    /// The thread in which the two agents answered each other: a case, or the message with which the thread began.
    pub thread: String,
    /// The message that went one step too far.
    pub message_id: MessageId,
    /// The other agent.
    pub with: AgentId,
    /// How often the two have answered each other.
    pub depth: u32,
    /// The time in which they did, in milliseconds.
    pub window_ms: u64,
    /// The time until which neither is woken by the other in this thread.
    pub until: Timestamp,
    /// Advice to the agent, as text.
    pub what_to_do: String,
}

/// The data of `answered_late`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredLate {
    /// The whole message with which the agent would have answered: an envelope.
    pub message: Map<String, Value>,
}

impl AnsweredLate {
    /// The notification that keeps `answer`.
    pub fn new(answer: &Envelope) -> Result<Self, serde_json::Error> {
        let message = serde_json::from_str(&serde_json::to_string(answer)?)?;
        Ok(Self { message })
    }
}
