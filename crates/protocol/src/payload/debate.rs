//! What the facilitator asks and what the parties answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::check_confidence;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, DebateId, Token};
use crate::payload::{Conflict, ConflictType, Position};
use crate::policy::Policy;
use crate::timestamp::Timestamp;

/// Parameters of the request `open_debate`, from the conflict detector to the facilitator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenDebate {
    /// The case the conflict belongs to.
    pub case_id: CaseId,
    /// What to settle.
    pub conflict: Conflict,
    /// The case's policy, frozen.
    pub policy: Policy,
}

/// What a party needs to know of the conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictView {
    /// Identity of the conflict.
    pub conflict_id: DebateId,
    /// Which kind.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// For a reader.
    pub topic: String,
    /// For a program.
    pub subject: String,
}

/// Limits an answer must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DebateLimits {
    /// Most tokens of an answer, estimated at four bytes a token.
    pub max_tokens: u32,
}

/// The payload of `question` in a debate: asks one party to keep, change or give up its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The debate; copy it into the answer's `correlation_id`, or answer with `reply_to`.
    pub debate_id: DebateId,
    /// The case.
    pub case_id: CaseId,
    /// What is disputed.
    pub conflict: ConflictView,
    /// This round, from 1.
    pub round: u32,
    /// The last round there will be.
    pub max_rounds: u32,
    /// What the asked agent holds now.
    pub your_position: Position,
    /// What the others hold now.
    pub other_positions: Vec<Position>,
    /// Limits of the answer.
    pub limits: DebateLimits,
    /// Until when an answer counts.
    pub deadline: Timestamp,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
}

/// The payload of `agreement`, `disagreement` and `revision`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The position now held, in words. May be left out when it is that of the peer agreed with, or unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised_position: Option<String>,
    /// The position now held, as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How sure the agent is now, 0 to 1; the metadata's confidence, or the earlier one, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// Whether the agent now agrees with a peer. Follows from the message type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with_peer: Option<bool>,
    /// With which peer, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with: Option<AgentId>,
    /// Why, in brief.
    #[serde(default)]
    pub reasoning: String,
    /// What supports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl Answer {
    /// Checks ranges; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        self.confidence.map_or(Ok(()), |confidence| check_confidence("/payload/confidence", confidence))
    }

    /// Tokens of the words in the answer, estimated at four bytes a token as is usual for English.
    pub fn estimated_tokens(&self) -> usize {
        let words = self.revised_position.as_deref().map_or(0, str::len) + self.reasoning.len();
        (words + self.evidence.iter().map(String::len).sum::<usize>()).div_ceil(4)
    }
}
