//! What the facilitator asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CaseId, DebateId, Token};
use crate::payload::{Conflict, ConflictType, DebateTerms, Position, PrecedentGuidance};
use crate::policy::Policy;
use crate::timestamp::Timestamp;

/// Parameters of the request `open_debate`, from the conflict detector to the facilitator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenDebate {
    /// The case the conflict belongs to.
    pub case_id: CaseId,
    /// The conflict to settle.
    pub conflict: Conflict,
    /// The case's policy, frozen.
    pub policy: Policy,
    /// The terms of the ladder for this debate.
    #[serde(default, skip_serializing_if = "DebateTerms::is_usual")]
    pub terms: DebateTerms,
}

/// The conflict as a party is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictView {
    /// Identity of the conflict.
    pub conflict_id: DebateId,
    /// The type of the conflict.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The disputed subject, for programs: as in the conflict.
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
    /// The conflict.
    pub conflict: ConflictView,
    /// The number of this round, from 1.
    pub round: u32,
    /// The number of the last round.
    pub max_rounds: u32,
    /// The position of the asked agent.
    pub your_position: Position,
    /// The positions of the others.
    pub other_positions: Vec<Position>,
    /// What earlier debates like this one say about it; in the first round, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<PrecedentGuidance>>,
    /// Where a reviewer has the dispute debated again: what the parties did not know before, in the reviewer's words; in each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
    /// The analyses of the case that rest on what is disputed, those first that use it; in the first round, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// The limits that the answer must keep.
    pub limits: DebateLimits,
    /// The time until which an answer counts.
    pub deadline: Timestamp,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
}
