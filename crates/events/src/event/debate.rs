//! Events of a debate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use super::ladder::{
    Acknowledged, AwaitsGate, Clarified, DeadlinesMoved, DebateAssigned, Escalated, EvidenceGiven,
    FellBack, Heard, OpinionGiven, Reminded, RulingSetAside, Unassigned,
};
use super::outcome::OutcomeKnown;
use crate::Aggregate;
use crate::Deadline;
use concord_wire::id::{AgentId, CaseId, MessageId};
use concord_wire::payload::{
    Answer, Conflict, ConflictOutcome, Credibility, DebateTerms, Position, Precedent,
    PrecedentGuidance, RoundRecord, Ruling, SetAsideReason,
};
use concord_wire::policy::Policy;
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a debate.
    DebateEvent of Aggregate::Debate;
    Opened(Box<DebateOpened>) = "opened", effects: true, deadlines: true,
        "A conflict is debated; in the first round each party is asked.";
    Flushed(Flushed) = "flushed", effects: false, deadlines: false,
        "A party has written what it knows into shared memory; others are still awaited.";
    Synced(Box<Synced>) = "synced", effects: true, deadlines: true,
        "The snapshot of shared memory is taken, at this event; in the first round each party is asked.";
    Answered(Answered) = "answered", effects: true, deadlines: false,
        "A party has answered; others are still awaited. The other parties are told.";
    AnswerSetAside(AnswerSetAside) = "answer_set_aside", effects: true, deadlines: false,
        "A late or repeated answer was recorded and changes nothing; the sender is told.";
    RoundClosed(RoundClosed) = "round_closed", effects: true, deadlines: true,
        "A round has ended without agreement; each party is asked again.";
    Resolved(Box<DebateResolved>) = "resolved", effects: true, deadlines: true,
        "The debate has ended, on whatever level; everyone in the case is told.";
    Acknowledged(Acknowledged) = "acknowledged", effects: true, deadlines: true,
        "Level 1: the challenged agent has seen the challenge; the challenger is told.";
    Clarified(Clarified) = "clarified", effects: true, deadlines: false,
        "Level 1: a question or answer between challenger and challenged; the other one is told.";
    EvidenceGiven(Box<EvidenceGiven>) = "evidence_given", effects: true, deadlines: true,
        "Levels 1 to 3: a party has given evidence or moved; the challenger is asked whether it settles the challenge.";
    Escalated(Box<Escalated>) = "escalated", effects: true, deadlines: true,
        "The debate has climbed to level 2 or 3; everyone in the case is told.";
    OpinionGiven(OpinionGiven) = "opinion_given", effects: false, deadlines: true,
        "Level 2: the mediator has said what it thinks.";
    Assigned(Box<DebateAssigned>) = "assigned", effects: true, deadlines: false,
        "Level 3: an expert has been given the debate, and is sent a brief.";
    Unassigned(Unassigned) = "unassigned", effects: true, deadlines: false,
        "Level 3: the expert who had the debate has left, or has let it lie; it waits in the queue again, and the expert is told.";
    Reminded(Reminded) = "reminded", effects: true, deadlines: true,
        "Level 3: half or nine tenths of the time have passed; the expert is told.";
    RulingSetAside(Box<RulingSetAside>) = "ruling_set_aside", effects: true, deadlines: false,
        "A ruling was recorded and does not count; its sender is told why.";
    FellBack(Box<FellBack>) = "fell_back", effects: true, deadlines: true,
        "Level 4: the cautious position stands, provisionally; everyone in the case is told.";
    AwaitsGate(AwaitsGate) = "awaits_gate", effects: true, deadlines: true,
        "Level 5: the provisional decision waits for its gate; everyone in the case is told.";
    DeadlinesMoved(DeadlinesMoved) = "deadlines_moved", effects: false, deadlines: true,
        "An operator has held, resumed or extended the deadlines of the debate.";
    OutcomeKnown(Box<OutcomeKnown>) = "outcome_known", effects: true, deadlines: false,
        "What proved right has been said after the debate; it enters the track records, and everyone is told.";
}

impl DebateEvent {
    /// The answer of a discussion round that it brings, if it brings one.
    pub fn answer(&self) -> Option<&ReceivedAnswer> {
        match self {
            Self::Answered(answered) => Some(&answered.received),
            Self::RoundClosed(closed) => closed.last.as_ref(),
            Self::Resolved(resolved) => resolved.last.as_ref(),
            Self::Escalated(escalated) => escalated.discussion.as_ref()?.last.as_ref(),
            _ => None,
        }
    }
}

/// Contents of `opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateOpened {
    /// The case.
    pub case_id: CaseId,
    /// The conflict, with the positions at the start.
    pub conflict: Conflict,
    /// The case's policy.
    #[serde(with = "concord_wire::policy::stored")]
    #[schemars(schema_with = "concord_wire::policy::stored::schema")]
    pub policy: Policy,
    /// The agents that are asked in the first round, ordered.
    pub asked: Vec<AgentId>,
    /// The time until which answers of the first round count; none when no round is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The terms of the ladder for this debate.
    #[serde(default, skip_serializing_if = "DebateTerms::is_usual")]
    pub terms: DebateTerms,
    /// How far each party is to be believed, as its track record was when the debate was opened: everything that is
    /// decided by track record in this debate is decided by this. Empty where the policy asks for no track record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credibility: BTreeMap<AgentId, Credibility>,
    /// Earlier debates like this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precedents: Vec<Precedent>,
    /// The open deadlines of a challenge; rounds have `due`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Deadline>,
    /// Until when the parties are awaited to write what they know into shared memory, before the first round; none where it begins at
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_until: Option<Timestamp>,
}

/// Contents of `flushed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flushed {
    /// The case.
    pub case_id: CaseId,
    /// The acknowledgement, and the party that sent it.
    pub heard: Heard,
}

/// Contents of `synced`. The snapshot is the sequence of this event: what is stored before it belongs to the snapshot, and nothing else
/// does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Synced {
    /// The case.
    pub case_id: CaseId,
    /// The conflict, with the positions at the start.
    pub conflict: Conflict,
    /// The acknowledgement of the last party; none when the deadline has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Heard>,
    /// The parties that have written what they know, ordered.
    pub flushed: Vec<AgentId>,
    /// Those that have not said so in time, ordered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<AgentId>,
    /// The number of the last round.
    pub rounds_max: u32,
    /// How many tokens an answer may have.
    pub tokens_per_message_max: u32,
    /// The agents that are asked in the first round, ordered.
    pub asked: Vec<AgentId>,
    /// The time until which its answers count.
    pub due: Timestamp,
    /// What proved right in debates like this one; none where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<PrecedentGuidance>>,
    /// What a reviewer has added to a debate that is had again; absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
    /// The analyses of the case that rest on what is disputed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
}

/// An answer as it was received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedAnswer {
    /// The sender.
    pub agent_id: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The number of the round that it answers.
    pub round: u32,
    /// Whether the party now holds a peer's position.
    pub agrees: bool,
    /// The answer itself.
    pub answer: Answer,
    /// The position of the party after the answer.
    pub position: Position,
    /// The other parties, who are told; absent where the policy does not say so, and in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_by: Option<HeardBy>,
}

/// The parties that are told an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HeardBy {
    /// Those with whose position at the beginning of the round the answer agrees, ordered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed_with: Vec<AgentId>,
    /// The others, ordered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreed_with: Vec<AgentId>,
}

/// Contents of `answered`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The case, to tell the other parties; absent in events of earlier versions, of which nobody is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The answer.
    pub received: ReceivedAnswer,
}

/// Contents of `answer_set_aside`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerSetAside {
    /// The case, to tell the sender.
    pub case_id: CaseId,
    /// The sender.
    pub agent_id: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The answer itself.
    pub answer: Answer,
    /// The reason why it changes nothing.
    pub reason: SetAsideReason,
}

/// The reason why a round ended.
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
    /// The conflict; `positions` are those after the round.
    pub conflict: Conflict,
    /// The answer that completed the round; none when the deadline closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedAnswer>,
    /// The reason why it ended.
    pub reason: CloseReason,
    /// The round in figures.
    pub record: RoundRecord,
    /// The number of the round that begins, from 2.
    pub next_round: u32,
    /// The number of the last round.
    pub rounds_max: u32,
    /// How many tokens an answer may have.
    pub tokens_per_message_max: u32,
    /// The agents that are asked in it, ordered.
    pub asked: Vec<AgentId>,
    /// The time until which its answers count.
    pub due: Timestamp,
    /// What the reviewer who had it debated again wants looked at; each question says it, for who answers need not remember the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
}

/// Contents of `resolved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateResolved {
    /// The case.
    pub case_id: CaseId,
    /// The answer that completed the last round, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedAnswer>,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The result.
    pub outcome: ConflictOutcome,
    /// The message that ended it, where that was no answer of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
    /// The ruling as it was sent, where it was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Box<Ruling>>,
}
