//! Facts of a debate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts;
use crate::id::{AgentId, CaseId, MessageId};
use crate::payload::{Answer, Conflict, ConflictOutcome, Position, RoundRecord, SetAsideReason};
use crate::policy::Policy;
use crate::subject::Aggregate;
use crate::timestamp::Timestamp;

facts! {
    /// What can happen to a debate.
    DebateEvent of Aggregate::Debate;
    Opened(Box<DebateOpened>) = "opened", effects: true, deadlines: true,
        "A conflict is debated; in the first round each party is asked.";
    Answered(Answered) = "answered", effects: false, deadlines: false,
        "A party has answered; others are still awaited.";
    AnswerSetAside(AnswerSetAside) = "answer_set_aside", effects: true, deadlines: false,
        "A late or repeated answer was recorded and changes nothing; the sender is told.";
    RoundClosed(RoundClosed) = "round_closed", effects: true, deadlines: true,
        "A round has ended without agreement; each party is asked again.";
    Resolved(Box<DebateResolved>) = "resolved", effects: true, deadlines: true,
        "The debate has ended, by discussion or by vote; everyone in the case is told.";
}

/// Contents of `opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateOpened {
    /// The case.
    pub case_id: CaseId,
    /// What is disputed, with the positions at the start.
    pub conflict: Conflict,
    /// The case's policy.
    pub policy: Policy,
    /// Who is asked in the first round, ordered.
    pub asked: Vec<AgentId>,
    /// Until when answers of the first round count; none when no round is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// An answer as it was received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedAnswer {
    /// Who sent it.
    pub agent_id: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// Which round it answers.
    pub round: u32,
    /// Whether the party now holds a peer's position.
    pub agrees: bool,
    /// What was answered.
    pub answer: Answer,
    /// What the party holds now.
    pub position: Position,
}

/// Contents of `answered`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The answer.
    pub received: ReceivedAnswer,
}

/// Contents of `answer_set_aside`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerSetAside {
    /// The case, to tell the sender.
    pub case_id: CaseId,
    /// Who sent it.
    pub agent_id: AgentId,
    /// In which message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// What was answered.
    pub answer: Answer,
    /// Why it changes nothing.
    pub reason: SetAsideReason,
}

/// Why a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// Everyone who was asked has answered.
    AllAnswered,
    /// The deadline passed.
    Deadline,
}

/// Contents of `round_closed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundClosed {
    /// The case.
    pub case_id: CaseId,
    /// What is disputed; `positions` are those after the round.
    pub conflict: Conflict,
    /// The answer that completed the round; none when the deadline closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedAnswer>,
    /// Why it ended.
    pub reason: CloseReason,
    /// The round in figures.
    pub record: RoundRecord,
    /// The round that begins, from 2.
    pub next_round: u32,
    /// The last round there will be.
    pub rounds_max: u32,
    /// Tokens of an answer.
    pub tokens_per_message_max: u32,
    /// Who is asked in it, ordered.
    pub asked: Vec<AgentId>,
    /// Until when its answers count.
    pub due: Timestamp,
}

/// Contents of `resolved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateResolved {
    /// The case.
    pub case_id: CaseId,
    /// The answer that completed the last round, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedAnswer>,
    /// For a reader: what was disputed.
    pub topic: String,
    /// How it ended.
    pub outcome: ConflictOutcome,
}
