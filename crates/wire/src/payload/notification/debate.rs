//! Notifications about one debate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, DebateId};
use crate::payload::track_record::{CredibilityScore, Source};
use crate::payload::{ConflictOutcome, Deadline, EscalationReason, Level, Mediation, ProvedParty};
use crate::timestamp::Timestamp;

/// The data of `debate_resolved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateResolved {
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The result of the debate.
    pub outcome: ConflictOutcome,
}

/// The data of `debate_concluded`: a debate has ended, and its case has taken the result into account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateConcluded {
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The result. One that is provisional is followed by another.
    pub outcome: ConflictOutcome,
}

/// The data of `challenge_acknowledged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChallengeAcknowledged {
    /// The debate about the challenge.
    pub debate_id: DebateId,
    /// The challenged agent.
    pub by: AgentId,
    /// When the challenged agent means to answer; null where it did not say.
    pub commit_by: Option<Timestamp>,
}

/// The data of `debate_escalated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateEscalated {
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The level that the debate leaves.
    pub from: Level,
    /// The level that the debate enters.
    pub to: Level,
    /// The reason for the climb.
    pub reason: EscalationReason,
    /// The deadlines that are open on the new level.
    pub waits_for: Vec<Deadline>,
    /// The result of mediation; null unless the debate leaves level 2.
    pub mediation: Option<Mediation>,
}

/// Why a debate was taken back from its expert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnassignedReason {
    /// The expert has left.
    #[default]
    Left,
    /// The expert has not ruled for half of the time that was left, and somebody else can.
    DidNotAct,
    /// Somebody else was given it.
    Reassigned,
}

impl UnassignedReason {
    /// Whether the expert has left, as in events of earlier versions.
    pub fn is_left(&self) -> bool {
        *self == Self::Left
    }
}

/// The data of `debate_unassigned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DebateUnassigned {
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The reason why it was taken back.
    #[serde(default, skip_serializing_if = "UnassignedReason::is_left")]
    pub reason: UnassignedReason,
}

/// The data of `ruling_due`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulingDue {
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The share of the time that has passed, in percent.
    pub percent: u8,
    /// The time until which a ruling counts.
    pub due: Timestamp,
}

/// The data of `debate_provisional`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateProvisional {
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The provisional result.
    pub outcome: ConflictOutcome,
}

/// The data of `debate_awaits_gate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DebateAwaitsGate {
    /// The debate.
    pub debate_id: DebateId,
    /// The gate that must review the provisional decision.
    pub gate: String,
}

/// The data of `outcome_known`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeKnown {
    /// The debate.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// The position that proved right, in words.
    pub position: String,
    /// The same position as a value; null where it has none.
    pub value: Option<Value>,
    /// The person or agent who reported it.
    pub by: AgentId,
    /// How that is known.
    pub explanation: String,
    /// Every party that held a position at the end, and whether it was right.
    pub parties: Vec<ProvedParty>,
}

/// The data of `credibility_changed`: what became of an agent's credibility in one domain because a debate was decided by a person, or
/// because it became known what was right in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CredibilityChanged {
    /// Whose credibility it is.
    pub agent_id: AgentId,
    /// The domain in which it counts.
    pub domain: String,
    /// The debate in which the agent held what proved right or wrong.
    pub debate_id: DebateId,
    /// The disputed subject, for a reader.
    pub topic: String,
    /// Whether the agent was right.
    pub correct: bool,
    /// How that is known.
    pub source: Source,
    /// The person or agent who decided or reported it.
    pub by: AgentId,
    /// The credibility before.
    pub before: CredibilityScore,
    /// The credibility from now on.
    pub after: CredibilityScore,
}
