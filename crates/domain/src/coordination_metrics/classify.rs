//! Classifies messages for the metrics of coordination.

use concord_events::topology::may_wake;
use concord_wire::payload::{DEREGISTER_AGENT, REGISTER_AGENT, UPDATE_AGENT};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, MessageId, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

use crate::activation::conversation::conversation_of;

/// How a message asks for help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// It asks one peer, or any agent that can help.
    Peer,
    /// It asks agents to work together.
    Invite,
    /// It asks the group. It counts as collaboration when somebody answers.
    Group,
}

/// The parts of a message that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedMessage {
    /// When it was stored.
    pub at: Timestamp,
    /// Its id.
    pub message_id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The addressee.
    pub to: Recipient,
    /// The conversation that it belongs to.
    pub session: Token,
    /// The message that it answers.
    pub reply_to: Option<String>,
    /// The thread that it belongs to.
    pub correlation_id: Option<String>,
    /// How it asks for help, if it does.
    pub asks: Option<Ask>,
    /// Whether it offers help that nobody asked for.
    pub offers: bool,
    /// Whether it may be an answer. Questions, receipts and errors are not.
    pub may_answer: bool,
    /// Whether its sender declines.
    pub declines: bool,
    /// Whether it may wake agents.
    pub may_wake: bool,
    /// Whether it is about the registration of agents and not about work.
    pub registers: bool,
    /// Whether the coordinator says with it how a question to the group ended. Its one answer is made of answers that count themselves.
    pub ends_question: bool,
}

impl TrackedMessage {
    /// The parts of a message that count, with the time at which it was stored.
    pub fn of(envelope: &Envelope, at: Timestamp) -> Self {
        let kind = &envelope.message_type;
        let may_answer = may_answer(kind);
        Self {
            at,
            message_id: envelope.message_id.clone(),
            from: envelope.from_agent.clone(),
            to: envelope.to_agent.clone(),
            session: conversation_of(envelope),
            reply_to: envelope.reply_to.clone(),
            correlation_id: envelope.correlation_id.clone(),
            asks: match kind {
                MessageType::PeerRequest => Some(Ask::Peer),
                MessageType::CollaborationInvite => Some(Ask::Invite),
                MessageType::GroupQuery => Some(Ask::Group),
                _ => None,
            },
            offers: *kind == MessageType::ExpertiseOffer,
            may_answer,
            declines: may_answer && declines(envelope),
            may_wake: may_wake(kind, &envelope.to_agent),
            registers: registers(envelope),
            ends_question: ends_question(envelope),
        }
    }
}

fn may_answer(kind: &MessageType) -> bool {
    use MessageType::{
        Acknowledgement, AgentJoined, CallForProposals, CollaborationInvite, Error, GroupQuery,
        PeerRequest, Question, Request, SessionBriefing, Status, TaskAssignment,
    };
    !matches!(
        kind,
        Acknowledgement
            | AgentJoined
            | CallForProposals
            | CollaborationInvite
            | Error
            | GroupQuery
            | PeerRequest
            | Question
            | Request
            | SessionBriefing
            | Status
            | TaskAssignment
    )
}

/// Whether an answer has `"accepted": false` in one of the places for it.
fn declines(envelope: &Envelope) -> bool {
    let no = Value::Bool(false);
    let payload: Value = envelope.payload().unwrap_or_default();
    let places = [payload.get("accepted"), payload.pointer("/result/accepted")];
    let of_metadata = || {
        envelope
            .metadata
            .extensions
            .get("accepted")
            .is_some_and(|raw| raw.get() == "false")
    };
    places.into_iter().flatten().any(|word| *word == no) || of_metadata()
}

fn registers(envelope: &Envelope) -> bool {
    match envelope.message_type {
        MessageType::AgentJoined | MessageType::Status => true,
        MessageType::Request => {
            let payload: Value = envelope.payload().unwrap_or_default();
            let action = payload.get("action").and_then(Value::as_str);
            action.is_some_and(|action| {
                [REGISTER_AGENT, UPDATE_AGENT, DEREGISTER_AGENT].contains(&action)
            })
        }
        _ => false,
    }
}

/// Its one answer, its error, and the notification that nobody need answer any more: each has a field that nothing else of the coordinator has.
fn ends_question(envelope: &Envelope) -> bool {
    if envelope.from_agent != Service::Coordinator.agent_id() {
        return false;
    }
    let payload: Value = envelope.payload().unwrap_or_default();
    let places = ["/result/question", "/details/silent", "/data/question"];
    places.iter().any(|place| payload.pointer(place).is_some())
}
