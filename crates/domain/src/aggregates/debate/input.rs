//! The inputs of a debate: messages of agents and people, commands of the services, and deadlines
//! that have passed.

use std::collections::BTreeMap;

use concord_events::{DeadlineControl, DeadlineElapsed, Heard};
use concord_wire::payload::{
    Answer, Background, Contact, Credibility, Evidence, OpenDebate, OutcomeReport, Overflow,
    Precedent, Review, Ruling, Snapshot, notification::UnassignedReason,
};
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Timestamp};

use crate::aggregates::person::Authority;

/// One input of a debate.
#[derive(Debug, Clone)]
pub enum DebateInput {
    /// The request to open the debate.
    Open(Box<Opening>),
    /// An agreement, disagreement or revision of a party.
    Answer(Box<AnswerMessage>),
    /// A message of a party, a mediator or an expert that belongs to the ladder.
    Message(Box<LadderMessage>),
    /// A command of the review queue, of a gate or of an operator.
    Command(Box<Command>),
    /// A report of what proved right, sent after the debate.
    Outcome(Box<OutcomeMessage>),
    /// A deadline has passed.
    Elapsed(DeadlineElapsed),
}

/// What was known before the debate, read where its strategy needs it.
#[derive(Debug, Clone, Default)]
pub struct PriorKnowledge {
    /// The credibility of each party, from its track record.
    pub credibility: BTreeMap<AgentId, Credibility>,
    /// Earlier debates of the same kind about the same subject, the latest first.
    pub precedents: Vec<Precedent>,
    /// The analyses of the case that rest on what is disputed.
    pub dependants: Vec<String>,
    /// The present regime, where an alert has named one that counts in place of the case's.
    pub regime: Option<String>,
}

/// A request to open a debate.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The request as it was sent.
    pub request: OpenDebate,
    /// What was known before.
    pub prior_knowledge: PriorKnowledge,
}

impl Opening {
    /// Opens a debate whose strategy needs no prior knowledge.
    pub fn of(request: OpenDebate) -> Self {
        Self {
            request,
            prior_knowledge: PriorKnowledge::default(),
        }
    }
}

/// An agreement, disagreement or revision, as the facilitator received it.
#[derive(Debug, Clone)]
pub struct AnswerMessage {
    /// The sender.
    pub agent_id: AgentId,
    /// The id of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The case in which it was sent; none outside of cases.
    pub case_id: Option<CaseId>,
    /// Sequence of the event whose question is answered, where the answer names the question.
    pub question_sequence: Option<u64>,
    /// The round that the answer says it belongs to.
    pub round: Option<u32>,
    /// Whether the message type is `agreement`.
    pub is_agreement: bool,
    /// Whether the message type is `disagreement`.
    pub is_disagreement: bool,
    /// The envelope's confidence.
    pub confidence: Option<f64>,
    /// The snapshot of shared memory that the answer refers to.
    pub snapshot: Option<Snapshot>,
    /// The payload.
    pub answer: Answer,
}

impl AnswerMessage {
    /// Whether the sender now holds the position of a peer: the payload says so, else the message
    /// type does.
    pub(super) fn agrees(&self) -> bool {
        self.answer.agrees_with_peer.unwrap_or(self.is_agreement)
    }

    /// Whether the sender keeps its position, unless the answer states another one.
    pub(super) fn maintains(&self) -> bool {
        self.is_disagreement && !self.agrees()
    }

    /// The message as an event refers to it.
    pub(super) fn reference(&self) -> Heard {
        Heard {
            agent_id: self.agent_id.clone(),
            message_id: self.message_id.clone(),
            digest: self.digest.clone(),
        }
    }
}

/// A message that belongs to the ladder, as the facilitator received it.
#[derive(Debug, Clone)]
pub struct LadderMessage {
    /// The sender.
    pub agent_id: AgentId,
    /// The id of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The case in which it was sent; none outside of cases.
    pub case_id: Option<CaseId>,
    /// The payload.
    pub body: MessageBody,
    /// The snapshot of shared memory that the message refers to.
    pub snapshot: Option<Snapshot>,
    /// What the sender may do; read for rulings only.
    pub sender: Authority,
    /// The case for which a ruling's signature fits the key that it names; `None` where it does not, or nobody signed.
    pub signed_for: Option<CaseId>,
}

impl LadderMessage {
    /// The message as an event refers to it.
    pub(super) fn reference(&self) -> Heard {
        Heard {
            agent_id: self.agent_id.clone(),
            message_id: self.message_id.clone(),
            digest: self.digest.clone(),
        }
    }
}

/// The payload of a message that belongs to the ladder.
#[derive(Debug, Clone)]
pub enum MessageBody {
    /// The challenged agent has seen the challenge.
    Acknowledgement {
        /// Until when it means to answer.
        commit_by: Option<Timestamp>,
    },
    /// A question or an answer between challenger and challenged.
    Clarification {
        /// The text that is passed on.
        text: String,
    },
    /// Evidence for a position; from the mediator, an opinion.
    Evidence(Evidence),
    /// The binding decision of an expert.
    Ruling(Box<Ruling>),
}

/// What the review queue, a gate or an operator does to a debate.
#[derive(Debug, Clone)]
pub enum Command {
    /// The review queue has assigned the debate to an expert.
    Assigned {
        /// The expert.
        expert: AgentId,
        /// Where the expert is notified.
        contact: Contact,
        /// What the expert is shown beside the positions; `None` where the case is not known.
        background: Option<Box<Background>>,
    },
    /// The expert has left or has let it lie; the debate waits in the review queue again.
    Unassigned {
        /// The expert who had it.
        expert: AgentId,
        /// Which of the two.
        reason: UnassignedReason,
    },
    /// The review queue is full.
    Overflowed {
        /// What the policy says about that.
        handling: Overflow,
    },
    /// A person has reviewed the provisional decision at a gate.
    Reviewed {
        /// The reviewer.
        by: AgentId,
        /// Who said the same before, where the policy wants two.
        first: Option<AgentId>,
        /// The reason that they gave.
        first_rationale: Option<String>,
        /// The review.
        review: Box<Review>,
        /// The id of the next debate, where the review asks for one.
        again: Option<DebateId>,
    },
    /// An operator holds, resumes or extends the deadlines.
    Deadlines {
        /// Which of the three.
        control: DeadlineControl,
        /// By how many milliseconds, for an extension.
        later_ms: u64,
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
    /// An operator cancels the debate, or its case.
    Cancel {
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
}

/// A report of what proved right, as the facilitator received it.
#[derive(Debug, Clone)]
pub struct OutcomeMessage {
    /// The sender.
    pub agent_id: AgentId,
    /// The id of the message.
    pub message_id: MessageId,
    /// SHA-256 of the message's payload.
    pub digest: String,
    /// The case that the message belongs to.
    pub case_id: Option<CaseId>,
    /// The payload.
    pub report: OutcomeReport,
    /// What the sender may do.
    pub sender: Authority,
    /// Whether the sender has opened the case.
    pub opened_case: bool,
}
