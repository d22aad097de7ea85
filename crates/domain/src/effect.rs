//! Every effect that Concord has on the outside, in one list. Read this first.
//!
//! Effects follow from stored events only. A service publishes each one as a message whose `message_id` is made of the
//! aggregate, the event's sequence and the position of the effect among those of the event, so that publishing again
//! changes nothing.

mod case;
mod draft;
mod escalation;
mod exchange;
mod id;
mod notify;
mod round;
mod task;

use std::sync::Arc;

use concord_events::{Briefed, MediatorAsked, RulingRefusal, SynthesisAsked};
use concord_wire::payload::{
    AgentJoined, Alert, Answer, Award, CallForProposals, Challenge, Clarification, Conflict,
    DebateTerms, ErrorReport, NotificationData, OpenDebate, Question, Request, SessionBriefing,
    SetAsideReason, StatusReport, TaskAssignment,
};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId, Fault, MessageId, Priority, Recipient, Timestamp};
use serde_json::Value;

pub use draft::{each_message, messages};
pub use id::{debate_of, effect_id, question_of, source_of};
pub(crate) use round::Round;

/// One message that a service publishes because of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A `response` to the agent that asked for a case: the case is open.
    ConfirmCase {
        /// The agent that asked.
        to: AgentId,
        /// The request for the case.
        request_id: MessageId,
    },
    /// A `response` to a request: it has succeeded.
    Respond {
        /// The agent that asked.
        to: AgentId,
        /// The request.
        request_id: MessageId,
        /// The `result` of the response.
        result: Value,
    },
    /// An `error` to the agent that asked: its request has failed.
    FailRequest {
        /// The agent that asked.
        to: AgentId,
        /// The request.
        request_id: MessageId,
        /// The reason.
        report: Box<ErrorReport>,
    },
    /// A message to everyone: an agent has joined, or has another card.
    AnnounceAgent(Box<AgentJoined>),
    /// A `status` to everyone: an agent is available, busy or unavailable.
    AnnounceStatus(StatusReport),
    /// An `alert` to everyone.
    Alert {
        /// At which priority.
        priority: Priority,
        /// What is told.
        alert: Box<Alert>,
    },
    /// A `notification` to one agent or to everyone in the case.
    Notify {
        /// One agent, or everyone.
        to: Recipient,
        /// What has happened, with the data about it.
        data: Box<NotificationData>,
    },
    /// A `task_assignment` to a participant of a case, or to an agent that does a task.
    AssignTask {
        /// The participant or agent.
        to: AgentId,
        /// The task: one for all participants, however large it is.
        assignment: Arc<TaskAssignment>,
    },
    /// A `session_briefing` to an agent that has joined a case.
    Brief {
        /// The agent.
        to: AgentId,
        /// What it must know.
        briefing: Box<SessionBriefing>,
    },
    /// A `call_for_proposals` to an agent.
    CallForProposals {
        /// The agent.
        to: AgentId,
        /// The call: one for all.
        call: Arc<CallForProposals>,
    },
    /// An `award` to the agent with the best bid.
    Award {
        /// The agent.
        to: AgentId,
        /// The award.
        award: Box<Award>,
    },
    /// An `error` to a sender: its message was recorded and is not used.
    ReportSetAside {
        /// The sender.
        to: AgentId,
        /// Its message.
        message_id: MessageId,
        /// The reason.
        reason: SetAsideReason,
        /// The kind of message: `finding` or `answer`.
        what: &'static str,
    },
    /// A `request` to the debate facilitator: it is to settle a conflict.
    OpenDebate {
        /// The conflict.
        conflict: Conflict,
        /// The case's policy.
        policy: Box<Policy>,
        /// What the ladder needs besides the conflict.
        terms: Box<DebateTerms>,
        /// The service that asks: the conflict detector, or the coordinator for a challenge.
        from: Service,
    },
    /// A `question` to a party of a debate: what is its position now?
    AskParty {
        /// The party.
        to: AgentId,
        /// The question.
        question: Box<Question>,
    },
    /// An `agreement` or `disagreement` to a party of a debate: another party has answered. It waits for no answer.
    TellAnswer {
        /// The party that is told.
        to: AgentId,
        /// The debate.
        debate_id: DebateId,
        /// The number of the round, from 1.
        round: u32,
        /// Whether the answer agrees with the position of the party that is told.
        agrees: bool,
        /// The answer, and whose it is.
        answer: Box<Answer>,
    },
    /// A `challenge` to the challenged agent.
    PresentChallenge {
        /// The challenged agent.
        to: AgentId,
        /// The debate about the challenge.
        debate_id: DebateId,
        /// The challenge.
        challenge: Box<Challenge>,
        /// The time until which it must be acknowledged.
        due: Option<Timestamp>,
    },
    /// A `clarification` that is passed on between challenger and challenged agent.
    PassOn {
        /// The one of them that has not sent it.
        to: AgentId,
        /// The debate about the challenge.
        debate_id: DebateId,
        /// The question or answer.
        clarification: Clarification,
    },
    /// A `request` to the mediator for an opinion.
    AskMediator {
        /// The debate.
        debate_id: DebateId,
        /// The mediator, and the positions.
        asked: Box<MediatorAsked>,
    },
    /// A `request` to an agent to make one answer of all answers to a question to the group.
    AskSynthesiser {
        /// The agent, and the answers.
        asked: Box<SynthesisAsked>,
    },
    /// A `request` to an expert for a ruling.
    AskExpert {
        /// The expert, and the brief.
        briefed: Box<Briefed>,
    },
    /// An `error` to the sender of a ruling that does not count.
    RefuseRuling {
        /// The sender.
        to: AgentId,
        /// Its message.
        message_id: MessageId,
        /// The reason.
        reason: RulingRefusal,
        /// The reason in words.
        explanation: String,
        /// What has changed since the brief that was ruled on, one line a change.
        changes: Vec<String>,
        /// The brief to rule on instead.
        brief: Option<Box<Briefed>>,
    },
}

impl Effect {
    /// A notification to one agent.
    pub(crate) fn tell(to: AgentId, data: impl Into<NotificationData>) -> Self {
        Self::Notify {
            to: to.into(),
            data: Box::new(data.into()),
        }
    }

    /// A notification to everyone in the case.
    pub(crate) fn tell_all(data: impl Into<NotificationData>) -> Self {
        Self::Notify {
            to: Recipient::All,
            data: Box::new(data.into()),
        }
    }
}

/// The parameters of the request that [`Effect::OpenDebate`] sends, as its receiver reads them.
pub fn read_open_debate(request: &Request) -> Result<OpenDebate, Fault> {
    concord_wire::envelope::from_json(
        request.parameters.to_string().as_bytes(),
        "/payload/parameters",
    )
}

#[cfg(test)]
mod tests;
