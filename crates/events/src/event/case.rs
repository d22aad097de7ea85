//! Events of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Heard, NameMatch, events};
use crate::Aggregate;
use concord_wire::id::{AgentId, DebateId, MessageId, Token};
use concord_wire::payload::{
    AlertFlag, Circumstances, Conflict, ConflictOutcome, DebateTerms, Decision, DecisionChange,
    Estimate, Finding, LogEntry, Review, SessionBriefing, SetAsideReason, Task, TaskAssignment,
    is_zero,
};
use concord_wire::policy::Policy;
use concord_wire::timestamp::Timestamp;

mod decided;

pub use decided::Decided;

events! {
    /// What can happen to a case.
    CaseEvent of Aggregate::Case;
    Opened(CaseOpened) = "opened", effects: true, deadlines: true,
        "The case was opened; each participant is given the task.";
    FindingRecorded(FindingRecorded) = "finding_recorded", effects: false, deadlines: false,
        "A participant's finding was recorded; others are still awaited.";
    FindingSetAside(SetAsideFinding) = "finding_set_aside", effects: true, deadlines: false,
        "A late or repeated finding was recorded and is not used; the sender is told.";
    FindingsClosed(FindingsClosed) = "findings_closed", effects: false, deadlines: true,
        "All have answered or the deadline passed; conflicts are looked for now.";
    ConflictsReceived(ConflictsReceived) = "conflicts_received", effects: false, deadlines: false,
        "The conflicts are known; their debates are awaited.";
    DebateSettled(DebateSettled) = "debate_settled", effects: true, deadlines: false,
        "One debate has ended; others are still awaited.";
    Decided(Box<Decided>) = "decided", effects: true, deadlines: true,
        "The case has its decision; everyone in it is told.";
    DecisionAwaited(DecisionAwaited) = "decision_awaited", effects: false, deadlines: true,
        "The time of the case is over; by its policy it waits until its debates are settled.";
    DecisionChanged(Box<DecisionChanged>) = "decision_changed", effects: true, deadlines: false,
        "An outcome that came after the decision has given it a new version; each participant is told.";
    FiguresRecorded(Box<FiguresRecorded>) = "figures_recorded", effects: true, deadlines: false,
        "Analyses were done again, and their figures have given the decision a new version; each participant is told.";
    Challenged(Box<Challenged>) = "challenged", effects: true, deadlines: false,
        "An agent disputes another's finding; a debate is opened.";
    ReviewRecorded(Box<ReviewRecorded>) = "review_recorded", effects: true, deadlines: false,
        "A first reviewer has said what is to happen at a gate; it counts when a second one says the same. Everyone is told.";
    GateReviewed(Box<GateReviewed>) = "gate_reviewed", effects: true, deadlines: false,
        "A person has confirmed or overridden a provisional decision, or has it debated again; everyone is told.";
    GatePassed(GatePassed) = "gate_passed", effects: true, deadlines: false,
        "A person has let the case pass a gate; everyone is told.";
    Joined(Box<Joined>) = "joined", effects: true, deadlines: false,
        "An agent has joined the case after it was opened; it is briefed, and everyone is told.";
    Confirmed(Box<Confirmed>) = "confirmed", effects: true, deadlines: false,
        "A participant has confirmed the finding of another, who is told.";
    EstimateNoted(EstimateNoted) = "estimate_noted", effects: false, deadlines: false,
        "A participant has written an estimate into shared memory, or something else in its place: it is compared like those of findings.";
    Flagged(Box<CaseFlagged>) = "flagged", effects: true, deadlines: false,
        "The regime has changed while the case is open; everyone is told what that concerns.";
    Cancelled(CaseCancelled) = "cancelled", effects: true, deadlines: true,
        "An operator has cancelled the case; everyone is told.";
}

/// Contents of `opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseOpened {
    /// The agent that asked for it.
    pub opened_by: AgentId,
    /// The `message_id` of the message.
    pub request_id: MessageId,
    /// The policy, frozen at the opening.
    #[serde(with = "concord_wire::policy::stored")]
    #[schemars(schema_with = "concord_wire::policy::stored::schema")]
    pub policy: Policy,
    /// SHA-256 of the policy.
    pub policy_digest: String,
    /// The participants, ordered.
    pub participants: Vec<AgentId>,
    /// The matter of the case.
    pub task: Task,
    /// The time until which findings count.
    pub findings_due: Timestamp,
    /// The time until which the case must be decided.
    pub case_due: Timestamp,
    /// Its gates, in the order in which they are passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// Whether a case without gates of its own has the final gate, where provisional decisions are reviewed. Cases of before there
    /// was one have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub final_gate: bool,
    /// The circumstances in which the case is judged.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
    /// The version of the policy that the opener named, whose name is `policy.preset`; 0 for a preset as it is shipped. None for
    /// cases of before policies were stored and had bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<u32>,
    /// Whether an operator has opened it, who is not held by the bounds of the policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_operator: bool,
}

impl CaseOpened {
    /// Who opened it, as its debates say it; none for cases of earlier versions, whose debates did not.
    pub fn opener_of_debates(&self) -> Option<AgentId> {
        self.policy_version.map(|_| self.opened_by.clone())
    }
}

/// Contents of `flagged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFlagged {
    /// The alert, and what of the case it concerns.
    pub flag: AlertFlag,
}

/// A finding as it was received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedFinding {
    /// The sender.
    pub agent_id: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload, to tell a repetition from an attempt to replace it.
    pub digest: String,
    /// The stated confidence, 0 to 1; 0.5 when none was stated.
    pub confidence: f64,
    /// The finding itself.
    pub finding: Finding,
}

/// Contents of `finding_recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRecorded {
    /// The finding.
    pub received: ReceivedFinding,
}

/// Contents of `finding_set_aside`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetAsideFinding {
    /// The finding.
    pub received: ReceivedFinding,
    /// The reason why it is not used.
    pub reason: SetAsideReason,
}

/// Contents of `findings_closed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingsClosed {
    /// The finding that completed the phase; none when the deadline closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ReceivedFinding>,
    /// The participants that have not answered.
    pub missing: Vec<AgentId>,
}

/// Contents of `conflicts_received`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictsReceived {
    /// The conflicts to be debated, in ranking order.
    pub debated: Vec<Conflict>,
    /// The conflicts beyond the policy's limit; they are not debated.
    pub deferred: Vec<Conflict>,
    /// Further conflicts, of lower rank, for which there is no room here; they follow from the findings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflicts_omitted: u32,
    /// Names that the sentence model took for words of the policy's vocabulary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scored: Vec<NameMatch>,
}

/// Contents of `debate_settled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateSettled {
    /// The result.
    pub outcome: ConflictOutcome,
    /// Its entry in the decision log; none in cases of before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Box<LogEntry>>,
    /// Who is told of the result: who is in the case. Nobody in events of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concluded_for: Vec<AgentId>,
}

/// Contents of `decision_awaited`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionAwaited {
    /// The debates that have no outcome yet.
    pub open: Vec<DebateId>,
}

/// Contents of `decision_changed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionChanged {
    /// The outcome that changed the decision.
    pub outcome: ConflictOutcome,
    /// Its entry in the decision log.
    pub entry: Box<LogEntry>,
    /// What is different, and why.
    pub change: DecisionChange,
    /// The new version of the decision.
    pub decision: Decision,
    /// Who is told: the participants, and who opened the case.
    pub told: Vec<AgentId>,
    /// Who is told of the result of the debate. Nobody in events of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concluded_for: Vec<AgentId>,
}

/// Contents of `figures_recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FiguresRecorded {
    /// The run that has brought the figures.
    pub run: u32,
    /// The analyses with new figures, as far as the decision has room for them.
    pub changed: Vec<Token>,
    /// The number of the version that is replaced.
    pub replaces: u32,
    /// The new version of the decision.
    pub decision: Decision,
    /// Who is told: the participants, and who opened the case.
    pub told: Vec<AgentId>,
}

/// A debate that the coordinator has opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebateAsked {
    /// The positions, in the form of a detected conflict.
    pub conflict: Conflict,
    /// The case's policy.
    #[serde(with = "concord_wire::policy::stored")]
    #[schemars(schema_with = "concord_wire::policy::stored::schema")]
    pub policy: Policy,
    /// The terms of the ladder for this debate.
    pub terms: DebateTerms,
}

/// Contents of `challenged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Challenged {
    /// The challenge's message.
    pub heard: Heard,
    /// The debate that it leads to.
    pub asked: DebateAsked,
}

/// Contents of `review_recorded`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRecorded {
    /// The review's message.
    pub heard: Heard,
    /// The review as it was sent.
    pub review: Review,
}

/// Contents of `gate_reviewed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReviewed {
    /// The review's message.
    pub heard: Heard,
    /// The provisional decision.
    pub debate_id: DebateId,
    /// The review as it was sent.
    pub review: Review,
    /// The reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The reason that the first reviewer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rationale: Option<String>,
    /// The debate that takes it up again, for `redebate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Box<DebateAsked>>,
}

/// Contents of `gate_passed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatePassed {
    /// The message.
    pub heard: Heard,
    /// The gate.
    pub gate: String,
    /// The reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The next gate; none after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Provisional decisions that nobody has reviewed, where the policy lets the case pass with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreviewed: Vec<DebateId>,
    /// The reason for passing the gate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// The review as it was sent, where it was signed or names what the reviewer saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Box<Review>>,
}

/// Contents of `joined`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Joined {
    /// The agent, a participant from now on.
    pub agent_id: AgentId,
    /// Who let it in.
    pub by: AgentId,
    /// The message by which it was let in; none for an order by request and reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Heard>,
    /// What it is asked to find; none where findings are not collected any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Box<TaskAssignment>>,
    /// What it is told. The task is that of the assignment, where there is one.
    pub briefing: Box<SessionBriefing>,
}

/// Contents of `cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseCancelled {
    /// The operator who cancelled the case.
    pub by: AgentId,
    /// The reason for the cancellation.
    pub why: String,
    /// Its debates that have not ended, which end with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debates: Vec<DebateId>,
}

/// Contents of `confirmed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// The message, and who has confirmed.
    pub heard: Heard,
    /// The `message_id` of the finding.
    pub finding: MessageId,
    /// Whose finding it is.
    pub author: AgentId,
    /// How sure the sender is, 0 to 1.
    pub confidence: f64,
    /// Why, in the sender's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The confidence of the finding with all its confirmations.
    pub strengthened: f64,
    /// Whether findings were still collected, and so are secret: whoever has confirmed is not told then how sure the author is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_collecting: bool,
}

/// Contents of `estimate_noted`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EstimateNoted {
    /// The participant, in whose memory it stands.
    pub agent: AgentId,
    /// The topic.
    pub topic: Token,
    /// Its version.
    pub version: u64,
    /// What was estimated; none where the topic has no estimate any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}
