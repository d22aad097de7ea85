//! Why a hosted agent gave no answer, what that says of it, and what its asker is told.

use std::time::Duration;

use concord_domain::resilience::call_policy::{Trouble, Verdict, verdict};
use concord_wire::ErrorCode;

/// What metrics and traces call a message that is too large in the agent's dialect.
const TOO_LARGE: &str = "too_large";

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Failure {
    /// What it means.
    pub(crate) verdict: Verdict,
    /// In words, without a full stop; never with anything that a server wrote.
    pub(crate) why: String,
    /// How long the server asks to be left alone.
    pub(crate) after: Option<Duration>,
    /// In a word, as metrics and traces name it.
    pub(crate) outcome: &'static str,
}

impl Failure {
    /// One of a call, to a server that can tell a call that is made again from another, or not.
    pub(crate) fn of(trouble: Trouble, idempotent: bool, why: impl Into<String>) -> Self {
        Self::new(verdict(trouble, idempotent), why)
    }

    /// One that has nothing to do with the agent, and that a further try would not change.
    pub(crate) fn here(code: ErrorCode, why: impl Into<String>) -> Self {
        Self::new(Verdict::here(code), why)
    }

    /// The agent cannot be told what was said to it, which `why` says.
    pub(crate) fn unsaid(code: ErrorCode, why: String) -> Self {
        let outcome = if code == ErrorCode::CapacityExceeded {
            TOO_LARGE
        } else {
            "unsaid"
        };
        Self::here(code, why).named(outcome)
    }

    fn new(verdict: Verdict, why: impl Into<String>) -> Self {
        Self {
            outcome: word(verdict.code),
            verdict,
            why: why.into(),
            after: None,
        }
    }

    /// The same under a word that says more.
    pub(crate) fn named(self, outcome: &'static str) -> Self {
        Self { outcome, ..self }
    }

    /// How the asker can go on.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        let suggestions: &[&str] = match self.verdict.code {
            _ if self.outcome == TOO_LARGE => &[
                "Send less: in a dialect a payload may take twice as many bytes, and references are resolved.",
                "Let the agent speak the canonical envelope: dialect = \"concord\" in its settings.",
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

/// A code, as metrics and traces name it.
fn word(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::AgentUnavailable => "unavailable",
        ErrorCode::Timeout => "timeout",
        ErrorCode::CapacityExceeded => "capacity",
        ErrorCode::InternalError | ErrorCode::InvalidRequest | ErrorCode::Unauthorized => "failed",
    }
}
