//! How an effect becomes a message: the envelope, filled by the function of its kind.

use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::subject::Service;
use concord_wire::{CaseId, Envelope, MessageId, MessageType, Priority, Recipient, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use super::escalation::ask_mediator;
use super::{Effect, case, effect_id, escalation, exchange, notify, task};

/// What the message of an effect says that does not follow from the event alone.
pub(super) struct Draft {
    pub(super) from: Service,
    pub(super) to: Recipient,
    pub(super) message_type: MessageType,
    pub(super) correlation_id: Option<String>,
    pub(super) reply_to: Option<MessageId>,
    pub(super) round: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) requires_response: bool,
    pub(super) priority: Priority,
    pub(super) payload: Result<Box<RawValue>, serde_json::Error>,
}

impl Draft {
    pub(super) fn new(
        from: Service,
        to: impl Into<Recipient>,
        message_type: MessageType,
        payload: &impl Serialize,
    ) -> Self {
        Self {
            from,
            to: to.into(),
            message_type,
            correlation_id: None,
            reply_to: None,
            round: None,
            deadline: None,
            requires_response: false,
            priority: Priority::Normal,
            payload: serde_json::value::to_raw_value(payload),
        }
    }

    /// The same as a message that belongs to a conversation: a debate, a thread, or that of another message.
    pub(super) fn about(self, conversation: &impl ToString) -> Self {
        Self {
            correlation_id: Some(conversation.to_string()),
            ..self
        }
    }

    /// The same as the answer to a message.
    pub(super) fn answering(self, message_id: MessageId) -> Self {
        Self {
            reply_to: Some(message_id.clone()),
            ..self.about(&message_id)
        }
    }

    /// The same as a message of this priority.
    pub(super) fn at(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// The same as a message that waits for an answer until `deadline`; without an end where there is none.
    pub(super) fn waiting_until(self, deadline: Option<Timestamp>) -> Self {
        Self {
            deadline,
            requires_response: true,
            ..self
        }
    }
}

/// The messages that follow from an event, ready to publish. Each is written when it is asked for: all of them can be many times
/// as large as the event.
pub fn each_message<M: crate::Machine>(
    stored: &StoredEvent<M::Event>,
) -> impl Iterator<Item = Result<Envelope, serde_json::Error>> + '_ {
    let case = M::case_of(stored);
    let snapshot = M::snapshot_of(stored);
    let effects = M::effects(stored).into_iter().enumerate();
    effects.map(move |(position, effect)| {
        let mut message = message(stored, case.as_ref(), position, effect)?;
        message.metadata.memory_snapshot = snapshot;
        Ok(message)
    })
}

/// The same, all at once.
pub fn messages<M: crate::Machine>(
    stored: &StoredEvent<M::Event>,
) -> Result<Vec<Envelope>, serde_json::Error> {
    each_message::<M>(stored).collect()
}

fn message<E: AggregateEvent>(
    stored: &StoredEvent<E>,
    case: Option<&CaseId>,
    position: usize,
    effect: Effect,
) -> Result<Envelope, serde_json::Error> {
    let draft = draft(effect, E::AGGREGATE.owner(), case);
    let envelope = Envelope::new(
        effect_id(&stored.meta.id, stored.sequence, position),
        stored.meta.at,
        draft.from.agent_id(),
        draft.to,
        draft.message_type,
        draft.payload?,
    );
    Ok(Envelope {
        case_id: case.cloned(),
        correlation_id: draft.correlation_id,
        reply_to: draft.reply_to.map(|id| id.to_string()),
        round: draft.round,
        requires_response: draft.requires_response,
        priority: draft.priority,
        deadline: draft.deadline,
        ..envelope
    })
}

/// The draft of each kind of effect. `owner` is the service whose event it follows from.
fn draft(effect: Effect, owner: Service, case: Option<&CaseId>) -> Draft {
    match effect {
        Effect::ConfirmCase { to, request_id } => case::confirm(owner, to, request_id, case),
        Effect::AssignTask { to, assignment } => case::assign_task(owner, to, &assignment),
        Effect::Brief { to, briefing } => case::brief(owner, to, &briefing),
        Effect::CallForProposals { to, call } => task::call_for_proposals(owner, to, &call),
        Effect::Award { to, award } => task::award(owner, to, &award),
        Effect::ReportSetAside {
            to,
            message_id,
            reason,
            what,
        } => case::report_set_aside(owner, to, message_id, reason, what),
        Effect::OpenDebate {
            conflict,
            policy,
            terms,
            from,
        } => case::open_debate(from, case, conflict, *policy, *terms),
        Effect::AskParty { to, question } => case::ask_party(owner, to, &question),
        Effect::TellAnswer {
            to,
            debate_id,
            round,
            agrees,
            answer,
        } => case::tell_answer(owner, to, &debate_id, round, agrees, &answer),
        Effect::Respond {
            to,
            request_id,
            result,
        } => exchange::respond(owner, to, request_id, result),
        Effect::FailRequest {
            to,
            request_id,
            report,
        } => exchange::fail(owner, to, request_id, &report),
        Effect::AnnounceAgent(joined) => exchange::announce_agent(owner, &joined),
        Effect::Alert { priority, alert } => exchange::alert(owner, priority, &alert),
        Effect::AnnounceStatus(report) => exchange::announce_status(owner, &report),
        Effect::Notify { to, data } => notify::notify(owner, to, &data),
        Effect::PresentChallenge {
            to,
            debate_id,
            challenge,
            due,
        } => escalation::present_challenge(owner, to, &debate_id, &challenge, due),
        Effect::PassOn {
            to,
            debate_id,
            clarification,
        } => escalation::pass_on(owner, to, &debate_id, &clarification),
        Effect::AskMediator { debate_id, asked } => ask_mediator(owner, &debate_id, *asked),
        Effect::AskSynthesiser { asked } => exchange::ask_synthesiser(owner, *asked),
        Effect::AskExpert { briefed } => escalation::ask_expert(owner, *briefed),
        Effect::RefuseRuling {
            to,
            message_id,
            reason,
            explanation,
            changes,
            brief,
        } => {
            let report =
                escalation::refusal(&message_id, reason, explanation, &changes, brief.as_deref());
            Draft::new(owner, to, MessageType::Error, &report).answering(message_id)
        }
    }
}
