//! Codes that cross the wire in an `error` message. Each has a stable meaning and a line in `docs/errors.md`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The six codes of the specification.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The target agent is not responding or not known.
    AgentUnavailable,
    /// The message is malformed, lacks something, or asks for what cannot be done.
    InvalidRequest,
    /// A deadline passed before an answer came.
    Timeout,
    /// A limit is reached: size, rate, or the number of things under way.
    CapacityExceeded,
    /// The sender may not do this.
    Unauthorized,
    /// The service failed; the message is kept and can be retried.
    InternalError,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::AgentUnavailable,
        Self::InvalidRequest,
        Self::Timeout,
        Self::CapacityExceeded,
        Self::Unauthorized,
        Self::InternalError,
    ];

    /// The code as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentUnavailable => "AGENT_UNAVAILABLE",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::Timeout => "TIMEOUT",
            Self::CapacityExceeded => "CAPACITY_EXCEEDED",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }

    /// What it means and what the sender can do, for `docs/errors.md`.
    pub fn explain(self) -> (&'static str, &'static str) {
        match self {
            Self::AgentUnavailable => (
                "The agent that was asked does not answer, or its program could not be run.",
                "Start the agent, or ask another; hosted agents are listed by `concord agents`.",
            ),
            Self::InvalidRequest => (
                "The message could not be used: `details.pointer` names the place, `error_message` says what is wrong there.",
                "Correct the named place and send again with a new `message_id`.",
            ),
            Self::Timeout => (
                "No answer came before the deadline; or what came, an answer or a request, was late. What is late in a case or debate is recorded there, and not kept under `dead`.",
                "Answer faster, or ask with a later deadline; a case, by a policy that allows more time.",
            ),
            Self::CapacityExceeded => (
                "A stated limit is reached: message size, tokens, messages a round, or recorded refusals of a case.",
                "Send less; `error_message` names the limit.",
            ),
            Self::Unauthorized => (
                "The sender may not do this: it is not a participant, was not asked, or speaks for another.",
                "Publish under your own agent id, and only to cases you take part in.",
            ),
            Self::InternalError => (
                "Whoever was asked failed, although the message may be good. Where a service failed on it the original is kept under `dead`.",
                "Ask again, or tell the operator: `concord dead list` shows what is kept, and `concord dead retry NUMBER` sends it again.",
            ),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
