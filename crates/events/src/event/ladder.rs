//! Events of a debate on the ladder. Each that changes what the debate waits for states all of it in `waits_for`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CloseReason, ReceivedAnswer};
use crate::Deadline;
use concord_wire::id::{AgentId, CaseId, MessageId};
use concord_wire::payload::notification::UnassignedReason;
use concord_wire::payload::{
    Brief, ConflictOutcome, Contact, DebatePriority, EscalationReason, Evidence, Level, Mediation,
    Overflow, Position, Question, RoundRecord, Tally,
};
use concord_wire::timestamp::Timestamp;

/// A message of the ladder as it was received, to know a repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Heard {
    /// The sender.
    pub agent_id: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
}

/// Contents of `acknowledged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledged {
    /// The case.
    pub case_id: CaseId,
    /// The acknowledgement.
    pub heard: Heard,
    /// The challenger, who is told.
    pub challenger: AgentId,
    /// The time until which the challenged agent means to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_by: Option<Timestamp>,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
    /// The deadlines that run again when an operator resumes the debate; empty unless they are held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Deadline>,
}

/// Contents of `clarified`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clarified {
    /// The case.
    pub case_id: CaseId,
    /// The question or answer.
    pub heard: Heard,
    /// The agent to which it is passed on.
    pub to: AgentId,
    /// The text of the question or answer.
    pub text: String,
}

/// Contents of `evidence_given`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceGiven {
    /// The case.
    pub case_id: CaseId,
    /// The evidence or revision.
    pub heard: Heard,
    /// The challenger's question whether it settles the challenge; none beyond level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ChallengerAsked>,
    /// The evidence.
    pub evidence: Evidence,
    /// The position of its sender after it.
    pub position: Position,
    /// The expert's brief as it is now, where one has been given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Briefed>,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
    /// The deadlines that run again when an operator resumes the debate; empty unless they are held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Deadline>,
}

/// The question whether the evidence settles a challenge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChallengerAsked {
    /// The challenger.
    pub to: AgentId,
    /// The question.
    pub question: Question,
}

/// A brief, the expert that it is for, and the digest that a ruling on it must name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Briefed {
    /// The expert.
    pub expert: AgentId,
    /// SHA-256 of the brief.
    pub digest: String,
    /// The brief.
    pub brief: Brief,
    /// The time until which a ruling counts.
    pub due: Timestamp,
}

/// The end of the discussion that a debate climbed from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiscussionEnded {
    /// The answer that completed the last round, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedAnswer>,
    /// The reason why the last round ended.
    pub reason: CloseReason,
    /// The rounds in figures.
    pub rounds: Vec<RoundRecord>,
    /// The vote, where one was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
}

/// Contents of `escalated`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Escalated {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The level that it leaves.
    pub from: Level,
    /// The level that it enters.
    pub to: Level,
    /// The reason for the escalation.
    pub reason: EscalationReason,
    /// The message that brought it about, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
    /// The discussion that it leaves behind, where it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discussion: Option<DiscussionEnded>,
    /// The result of mediation, when the debate leaves level 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mediation: Option<Mediation>,
    /// The mediator that is asked for an opinion, at level 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mediator: Option<MediatorAsked>,
    /// The entry for the review queue, at level 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueEntry>,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
}

/// The mediator's question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediatorAsked {
    /// The mediator.
    pub mediator: AgentId,
    /// The positions.
    pub positions: Vec<Position>,
    /// The time until which an opinion is considered.
    pub due: Timestamp,
}

/// The entry of a debate in the review queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueEntry {
    /// The priority in the review queue.
    pub priority: DebatePriority,
    /// Who opened its case; none for cases of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// The expertise that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The agents that may not rule: the parties.
    pub excluded: Vec<AgentId>,
    /// The time until which a ruling counts.
    pub due: Timestamp,
    /// What happens to the debate if the queue is full.
    pub overflow: Overflow,
    /// How many debates may wait in the queue.
    pub queue_max: u32,
}

/// Contents of `opinion_given`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpinionGiven {
    /// The case.
    pub case_id: CaseId,
    /// The opinion's message.
    pub heard: Heard,
    /// The text of the opinion.
    pub text: String,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
    /// The deadlines that run again when an operator resumes the debate; empty unless they are held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Deadline>,
}

/// Contents of `assigned`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateAssigned {
    /// The case.
    pub case_id: CaseId,
    /// The brief, and the expert that it is for.
    pub briefed: Briefed,
    /// The addresses at which the expert is notified, as registered then.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// The expert who had it until now, where it was not taken back from them before. Absent in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<InsteadOf>,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
}

/// The expert who had a debate that somebody else was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsteadOf {
    /// The expert.
    pub expert: AgentId,
    /// The addresses at which the expert is notified, as registered then.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
}

/// Contents of `unassigned`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unassigned {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The expert that had it.
    pub expert: AgentId,
    /// The addresses at which the expert is notified, as registered then. Empty in events of earlier versions.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// The reason why it was taken back.
    #[serde(default, skip_serializing_if = "UnassignedReason::is_left")]
    pub reason: UnassignedReason,
}

/// Contents of `reminded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reminded {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// Whose ruling is awaited; nobody's yet when it still waits in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<AgentId>,
    /// The addresses at which the expert is notified, as registered then.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// How much of the time has passed, in percent.
    pub percent: u8,
    /// Whether the expert has let it lie for so long that the queue may give it to somebody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    /// The time until which a ruling counts.
    pub due: Timestamp,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
}

/// The reason why a ruling is recorded and does not count.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RulingRefusal {
    /// Another ruling was first.
    Second,
    /// The time for a ruling was over.
    TimedOut,
    /// The debate has changed since the expert saw it.
    Changed,
}

/// Contents of `ruling_set_aside`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulingSetAside {
    /// The case.
    pub case_id: CaseId,
    /// The ruling's message.
    pub heard: Heard,
    /// The reason why it does not count.
    pub reason: RulingRefusal,
    /// In words: what stands instead, or what has changed.
    pub explanation: String,
    /// What has changed since the brief that was ruled on, one line a change, the oldest first. Empty where the digest is
    /// of no brief of this debate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The brief as it is now, where the old one was ruled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Briefed>,
}

/// Contents of `fell_back`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FellBack {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The cautious position, provisionally.
    pub outcome: ConflictOutcome,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
}

/// Contents of `awaits_gate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitsGate {
    /// The case.
    pub case_id: CaseId,
    /// The disputed subject, for people to read. Empty in events of the first versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The gate that must review it.
    pub gate: String,
}

/// An operator's change to the deadlines of a debate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineControl {
    /// They do not run until they are resumed.
    Hold,
    /// They run again, later by the time they were held.
    Resume,
    /// They are all later by so much.
    Extend,
}

/// Contents of `deadlines_moved`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadlinesMoved {
    /// The case.
    pub case_id: CaseId,
    /// The change.
    pub control: DeadlineControl,
    /// The operator.
    pub by: AgentId,
    /// The reason of the operator.
    pub why: String,
    /// By how much, in milliseconds; 0 for `hold`.
    pub later_ms: u64,
    /// Names and times that are held and will be later when resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Deadline>,
    /// All open deadlines of the debate.
    pub waits_for: Vec<Deadline>,
}

/// Names of the ladder's deadlines.
pub mod names {
    /// Level 1: the acknowledgement.
    pub const ACKNOWLEDGE: &str = "acknowledge";
    /// Level 1: the evidence.
    pub const EVIDENCE: &str = "evidence";
    /// Level 1: what the challenger says to it.
    pub const EVALUATION: &str = "evaluation";
    /// Level 2: when track records are compared; at once, or when the mediator's time is up.
    pub const COMPARE: &str = "compare";
    /// Level 2: when it has not taken place.
    pub const MEDIATION: &str = "mediation";
    /// Level 3: the first reminder.
    pub const HALF: &str = "person-half";
    /// Level 3: the second reminder.
    pub const NEARLY: &str = "person-nearly";
    /// Level 3: the ruling.
    pub const PERSON: &str = "person";
    /// Level 4: the window of the provisional decision.
    pub const PROVISIONAL: &str = "provisional";
}
