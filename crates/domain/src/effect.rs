//! Every effect that Concord has on the outside, in one list. Read this first.
//!
//! Effects follow from stored facts only. The shell publishes each one with a `message_id` made of the aggregate, the
//! fact's sequence and the effect's place, so that publishing again changes nothing.

use concord_events::{AggregateEvent, Briefed, MediatorAsked, RulingRefusal, StoredEvent};
use concord_wire::envelope::Metadata;
use concord_wire::payload::{
    AgentJoined, Challenge, Clarification, Conflict, ConflictOutcome, DebateTerms, Decision,
    ErrorReport, Notification, NotificationSeverity, OpenDebate, Question, Request, SetAsideReason,
    StatusReport, TaskAssignment,
};
use concord_wire::policy::Policy;
use concord_wire::subject::Service;
use concord_wire::{
    AgentId, CaseId, DebateId, Envelope, ErrorCode, Extensions, Fault, MessageId, MessageType,
    Priority, Recipient, Timestamp, Token,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

/// What is said because of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Tells who asked for a case that it is open.
    ConfirmCase {
        /// Who asked.
        to: AgentId,
        /// In which message.
        request_id: MessageId,
    },
    /// Answers a request with success.
    Respond {
        /// Who asked.
        to: AgentId,
        /// In which message.
        request_id: MessageId,
        /// The result.
        result: Value,
    },
    /// Tells everyone of an agent that has joined, or has another card.
    AnnounceAgent(Box<AgentJoined>),
    /// Tells everyone how an agent is.
    AnnounceStatus(StatusReport),
    /// Tells who asked that nobody answers.
    FailRequest {
        /// Who asked.
        to: AgentId,
        /// In which message.
        request_id: MessageId,
        /// Why.
        report: Box<ErrorReport>,
    },
    /// Gives an agent a message that concerns it although it was not addressed to it.
    Wake {
        /// The agent.
        to: AgentId,
        /// The message.
        message_id: MessageId,
        /// The message, why, and what was said before.
        data: Value,
    },
    /// Tells who asked that what takes long is complete.
    CompleteRequest {
        /// Who asked.
        to: AgentId,
        /// In which message.
        request_id: MessageId,
        /// What came of it.
        data: Value,
    },
    /// Gives a participant the task.
    AssignTask {
        /// Which participant.
        to: AgentId,
        /// The task.
        assignment: TaskAssignment,
    },
    /// Tells a sender that its message was recorded and not used.
    ReportSetAside {
        /// The sender.
        to: AgentId,
        /// Its message.
        message_id: MessageId,
        /// Why.
        reason: SetAsideReason,
        /// `finding` or `answer`.
        what: &'static str,
    },
    /// Has a conflict debated.
    OpenDebate {
        /// What to settle.
        conflict: Conflict,
        /// By which rules.
        policy: Box<Policy>,
        /// What concerns the ladder.
        terms: Box<DebateTerms>,
        /// Who asks: the conflict detector, or the coordinator for a challenge.
        from: Service,
    },
    /// Asks a party for its position.
    AskParty {
        /// Which party.
        to: AgentId,
        /// The question.
        question: Box<Question>,
    },
    /// Tells everyone in the case how a debate ended.
    AnnounceResolution {
        /// What was disputed.
        topic: String,
        /// How it ended.
        outcome: Box<ConflictOutcome>,
    },
    /// Tells everyone in the case its decision.
    AnnounceDecision {
        /// The decision.
        decision: Box<Decision>,
    },
    /// Tells one of them, or all, what has happened on the ladder.
    Notify {
        /// Whom.
        to: Recipient,
        /// What has happened.
        event: &'static str,
        /// About it.
        data: Value,
    },
    /// Tells the challenged agent what it is challenged with.
    PresentChallenge {
        /// The challenged agent.
        to: AgentId,
        /// The debate.
        debate_id: DebateId,
        /// The challenge.
        challenge: Box<Challenge>,
        /// Until when it must be acknowledged.
        due: Option<Timestamp>,
    },
    /// Passes a question or answer on between challenger and challenged.
    PassOn {
        /// To whom.
        to: AgentId,
        /// Which debate.
        debate_id: DebateId,
        /// Its words.
        clarification: Clarification,
    },
    /// Asks the mediator for an opinion.
    AskMediator {
        /// The debate.
        debate_id: DebateId,
        /// Whom, and what about.
        asked: Box<MediatorAsked>,
    },
    /// Asks an expert for a ruling.
    AskExpert {
        /// The brief.
        briefed: Box<Briefed>,
    },
    /// Tells the sender of a ruling why it does not count.
    RefuseRuling {
        /// The sender.
        to: AgentId,
        /// Its message.
        message_id: MessageId,
        /// Why.
        reason: RulingRefusal,
        /// In words.
        explanation: String,
        /// What has changed since the brief that was ruled on, one line a change.
        changes: Vec<String>,
        /// The brief to rule on instead.
        brief: Option<Box<Briefed>>,
    },
}

impl Effect {
    /// Tells one agent what has happened.
    pub(crate) fn tell(to: AgentId, event: &'static str, data: Value) -> Self {
        Self::Notify {
            to: to.into(),
            event,
            data,
        }
    }

    /// Tells everyone in the case what has happened.
    pub(crate) fn tell_all(event: &'static str, data: Value) -> Self {
        Self::Notify {
            to: Recipient::All,
            event,
            data,
        }
    }
}

/// An effect with what it takes from the record it follows from.
struct Draft {
    from: Service,
    to: Recipient,
    message_type: MessageType,
    correlation_id: Option<String>,
    reply_to: Option<MessageId>,
    round: Option<u32>,
    deadline: Option<Timestamp>,
    requires_response: bool,
    payload: Result<Box<RawValue>, serde_json::Error>,
}

impl Draft {
    fn new(
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
            payload: serde_json::value::to_raw_value(payload),
        }
    }
}

/// The messages that follow from a record, ready to publish.
pub fn messages<M: crate::Machine>(
    record: &StoredEvent<M::Event>,
) -> Result<Vec<Envelope>, serde_json::Error> {
    let case = M::case_of(record);
    let effects = M::effects(record).into_iter().enumerate();
    effects
        .map(|(place, effect)| message(record, case.as_ref(), place, effect))
        .collect()
}

fn message<E: AggregateEvent>(
    record: &StoredEvent<E>,
    case: Option<&CaseId>,
    place: usize,
    effect: Effect,
) -> Result<Envelope, serde_json::Error> {
    let draft = draft(effect, E::AGGREGATE.owner(), case);
    let message_id = effect_id(&record.meta.id, record.sequence, place);
    Ok(Envelope {
        message_id,
        timestamp: record.meta.at,
        from_agent: draft.from.agent_id(),
        to_agent: draft.to,
        message_type: draft.message_type,
        case_id: case.cloned(),
        correlation_id: draft.correlation_id,
        reply_to: draft.reply_to.map(|id| id.to_string()),
        round: draft.round,
        priority: Priority::Normal,
        requires_response: draft.requires_response,
        deadline: draft.deadline,
        payload: draft.payload?,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..Metadata::default()
        },
        extensions: Extensions::default(),
    })
}

fn draft(effect: Effect, owner: Service, case: Option<&CaseId>) -> Draft {
    match effect {
        Effect::ConfirmCase { to, request_id } => exchange::draft(
            Effect::Respond {
                to,
                request_id,
                result: json!({ "case_id": case }),
            },
            owner,
        ),
        Effect::AssignTask { to, assignment } => {
            let deadline = Some(assignment.deadline);
            let draft = Draft::new(
                Service::Coordinator,
                to,
                MessageType::TaskAssignment,
                &assignment,
            );
            Draft {
                deadline,
                requires_response: true,
                ..draft
            }
        }
        Effect::ReportSetAside {
            to,
            message_id,
            reason,
            what,
        } => {
            let draft = Draft::new(
                owner,
                to,
                MessageType::Error,
                &set_aside_report(reason, what, &message_id),
            );
            Draft {
                correlation_id: Some(message_id.to_string()),
                reply_to: Some(message_id),
                ..draft
            }
        }
        Effect::OpenDebate {
            conflict,
            policy,
            terms,
            from,
        } => {
            let to = Service::DebateFacilitator.agent_id();
            let correlation_id = Some(conflict.conflict_id.to_string());
            let parameters = case.map(|case| OpenDebate {
                case_id: case.clone(),
                conflict,
                policy: *policy,
                terms: *terms,
            });
            let payload = json!({ "action": OPEN_DEBATE, "parameters": parameters });
            Draft {
                correlation_id,
                ..Draft::new(from, to, MessageType::Request, &payload)
            }
        }
        Effect::AskParty { to, question } => Draft {
            correlation_id: Some(question.debate_id.to_string()),
            round: Some(question.round),
            deadline: Some(question.deadline),
            requires_response: true,
            ..Draft::new(
                Service::DebateFacilitator,
                to,
                MessageType::Question,
                &question,
            )
        },
        Effect::AnnounceResolution { topic, outcome } => {
            let correlation_id = Some(outcome.conflict_id.to_string());
            let data = json!({ "topic": topic, "outcome": outcome });
            let payload = Notification {
                event: "debate_resolved".into(),
                data,
                severity: NotificationSeverity::Info,
            };
            let from = Service::DebateFacilitator;
            Draft {
                correlation_id,
                ..Draft::new(from, Recipient::All, MessageType::Notification, &payload)
            }
        }
        Effect::AnnounceDecision { decision } => {
            let data = json!({ "decision": decision });
            let payload = Notification {
                event: "case_decided".into(),
                data,
                severity: NotificationSeverity::Info,
            };
            Draft::new(
                Service::Coordinator,
                Recipient::All,
                MessageType::Notification,
                &payload,
            )
        }
        exchange @ (Effect::Respond { .. }
        | Effect::AnnounceAgent(_)
        | Effect::AnnounceStatus(_)
        | Effect::FailRequest { .. }
        | Effect::Wake { .. }
        | Effect::CompleteRequest { .. }) => exchange::draft(exchange, owner),
        on_the_ladder => ladder::draft(on_the_ladder, owner),
    }
}

/// The action of a request that opens a case.
pub const OPEN_CASE: &str = "open_case";
/// The action of a request that opens a debate.
pub const OPEN_DEBATE: &str = "open_debate";
/// The action of a request for a person's ruling.
pub const RULE: &str = "rule";
/// The action of a request for a mediator's opinion.
pub const MEDIATE: &str = "mediate";

/// `message_id` of the effect at `place` of the fact at `sequence`.
pub fn effect_id(aggregate_id: &Token, sequence: u64, place: usize) -> MessageId {
    MessageId::of_effect(aggregate_id, sequence, place)
}

/// The inverse of [`effect_id`]: aggregate and sequence of the fact that a message follows from.
pub fn source_of(message_id: &str) -> Option<(&str, u64)> {
    let (rest, place) = message_id.rsplit_once('-')?;
    let (aggregate_id, sequence) = rest.rsplit_once('-')?;
    Some((
        aggregate_id,
        number(sequence).filter(|_| number(place).is_some())?,
    ))
}

/// Reads a number in the one form in which it is written: an id has no second spelling.
fn number(digits: &str) -> Option<u64> {
    digits
        .parse::<u64>()
        .ok()
        .filter(|number| number.to_string() == digits)
}

fn set_aside_report(reason: SetAsideReason, what: &str, message_id: &MessageId) -> ErrorReport {
    let fault = match reason {
        SetAsideReason::Late => Fault::new(
            ErrorCode::Timeout,
            "",
            format!("The {what} came after its phase had closed; it is recorded and not used."),
            "Answer before the deadline that stands in the message you were sent.",
        ),
        SetAsideReason::Repeated => Fault::invalid(
            "",
            format!("You had already given a {what}; this one is recorded and not used."),
            "Give one answer to each assignment and each question.",
        ),
    };
    let mut report = ErrorReport::from(&fault);
    report
        .details
        .insert("message_id".into(), json!(message_id));
    report
}

/// The request that [`Effect::OpenDebate`] sends, as its receiver reads it.
pub fn read_open_debate(request: &Request) -> Result<OpenDebate, Fault> {
    concord_wire::envelope::from_json(
        request.parameters.to_string().as_bytes(),
        "/payload/parameters",
    )
}

mod exchange;
mod ladder;
mod round;

pub use exchange::{ANSWERED_LATE, WOKEN};
pub(crate) use round::Round;

#[cfg(test)]
mod tests;
