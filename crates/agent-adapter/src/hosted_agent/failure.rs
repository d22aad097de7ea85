//! Why a hosted agent gave no answer, and what the sender of the message is told about it.

use std::time::Duration;

use concord_domain::resilience::call_policy::{CallFailure, Classification, classify};
use concord_wire::ErrorCode;

/// The outcome of a message that is too large in the agent's dialect, in metrics and traces.
const TOO_LARGE: &str = "too_large";
/// The outcome of an answer that is larger than a message may be.
const ANSWER_TOO_LARGE: &str = "answer_too_large";

/// Why a hosted agent gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Failure {
    /// The error code for the sender, whether to try again, and what the breaker learns.
    pub verdict: Classification,
    /// The reason in words, without a full stop. Never repeats anything that a server wrote.
    pub why: String,
    /// How long the server asks not to be called again.
    pub after: Option<Duration>,
    /// The label of the failure in metrics and traces.
    pub outcome: &'static str,
}

impl Failure {
    /// The failure of a call. `idempotent` says whether the server recognizes a call that is made again.
    pub fn of_call(trouble: CallFailure, idempotent: bool, why: impl Into<String>) -> Self {
        let failure = Self::new(classify(trouble, idempotent), why);
        match trouble {
            CallFailure::TooLong => failure.with_outcome(ANSWER_TOO_LARGE),
            _ => failure,
        }
    }

    /// An answer has no room in a message.
    pub(crate) fn answer_too_large(why: String) -> Self {
        Self::local(ErrorCode::CapacityExceeded, why).with_outcome(ANSWER_TOO_LARGE)
    }

    /// A failure that says nothing about the agent and that a further try would not change.
    pub(crate) fn local(code: ErrorCode, why: impl Into<String>) -> Self {
        Self::new(Classification::here(code), why)
    }

    /// The message cannot be written in the agent's dialect, for the reason `why`.
    pub(crate) fn inexpressible(code: ErrorCode, why: String) -> Self {
        let outcome = if code == ErrorCode::CapacityExceeded {
            TOO_LARGE
        } else {
            "unsaid"
        };
        Self::local(code, why).with_outcome(outcome)
    }

    fn new(verdict: Classification, why: impl Into<String>) -> Self {
        Self {
            outcome: label(verdict.code),
            verdict,
            why: why.into(),
            after: None,
        }
    }

    /// The same failure under a label that says more.
    pub(crate) fn with_outcome(self, outcome: &'static str) -> Self {
        Self { outcome, ..self }
    }

    /// What the sender of the message can do about it.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        let suggestions: &[&str] = match self.verdict.code {
            _ if self.outcome == TOO_LARGE => &[
                "Send less: in a dialect a payload may take twice as many bytes, and references are resolved.",
                "Let the agent speak the canonical envelope: dialect = \"concord\" in its settings.",
            ],
            _ if self.outcome == ANSWER_TOO_LARGE => &[
                "Ask for less at a time, or for a reference to what is large.",
                "Have the agent answer with less: a message has room for 1 MiB.",
            ],
            ErrorCode::AgentUnavailable => &[
                "Ask again later, or ask another agent.",
                "See `concord agents` for how it stands, and the adapter's log for why.",
            ],
            ErrorCode::Timeout => &[
                "Ask again with a later deadline.",
                "Give the agent more time or more instances.",
            ],
            ErrorCode::CapacityExceeded => &[
                "Ask again later, or less often.",
                "Raise the agent's queue_max or instances, or the budget of its provider.",
            ],
            ErrorCode::InvalidRequest => &[
                "Leave the field out, or give it another name.",
                "Let the agent speak the canonical envelope: dialect = \"concord\" in its settings.",
            ],
            _ => &["Look at the adapter's log; `concord agents` shows how the agent is run."],
        };
        suggestions.iter().map(|text| (*text).to_owned()).collect()
    }
}

/// The label of an error code in metrics and traces.
fn label(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::AgentUnavailable => "unavailable",
        ErrorCode::Timeout => "timeout",
        ErrorCode::CapacityExceeded => "capacity",
        ErrorCode::InternalError | ErrorCode::InvalidRequest | ErrorCode::Unauthorized => "failed",
    }
}
