//! A confirmation: an agent has come to what another has found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, MessageId};

/// The payload of `confirmation`. Sent to the coordinator in a case, it confirms a finding of the case. How sure the sender is stands in the
/// metadata, like with a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// The `message_id` of the finding that is confirmed.
    pub confirms: MessageId,
    /// Whose finding it is. A `message_id` is its sender's own, so several may have found something under the same one; who names the author
    /// confirms nobody else's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<AgentId>,
    /// What the sender has looked at, or why it comes to the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// That a participant has confirmed a finding of another, and what its confidence is with that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmedFinding {
    /// The `message_id` of the finding.
    pub finding: MessageId,
    /// Who has found it.
    pub author: AgentId,
    /// The confidence of its author, 0 to 1.
    pub confidence: f64,
    /// Who has confirmed it, in the order of their names, with how sure each is.
    pub by: Vec<ConfirmedBy>,
    /// The confidence with all confirmations: each takes up to half of the doubt that is left, `1 - (1 - c) (1 - c1 / 2) (1 - c2 / 2) ...`.
    pub strengthened: f64,
}

/// Who has confirmed a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmedBy {
    /// The participant.
    pub agent: AgentId,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
}
