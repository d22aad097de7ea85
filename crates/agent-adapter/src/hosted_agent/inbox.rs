//! The messages of a hosted agent: which of them it is to answer.

use std::sync::Arc;

use concord_domain::aggregates::request::admissibility;
use concord_events::Remembered;
use concord_runtime::Ports;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_wire::payload::notification::{
    CaseDecided, CaseDecisionChanged, CaseFiguresRecorded, CredibilityChanged, DebateConcluded,
    DebateResolved, EventData, FindingConfirmed, InsightShared, InsightsConsolidated, PassedOn,
    Woken,
};
use concord_wire::payload::{Card, ErrorReport, Notification, Request};
use concord_wire::subject::Service;
use concord_wire::{Envelope, ErrorCode, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

use crate::hosted_agent::agent_caller::AgentCaller;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::host::Host;

/// Handles the messages to one hosted agent.
pub struct InboxHandler<P: Ports, C>(pub Arc<Host<P, C>>);

impl<P: Ports, C: AgentCaller> Handler for InboxHandler<P, C> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let host = &*self.0;
        let context = &host.context;
        let message = match delivery.read(context).await {
            Ok(message) => message,
            Err(failed @ HandleError::Retry(_)) => return Err(failed),
            // A message that another agent garbled is in the transcript; the agent is not bothered with it.
            Err(_) => return Ok(self.ignore("no_response_required")),
        };
        if let Some(failure) = not_expressed(&message) {
            host.decline(failure, &message, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        if let Some(original) = waking_message_left_out(&message) {
            let why = "what was said is more than can be repeated to who is woken by it";
            let failure = Failure::local(ErrorCode::CapacityExceeded, why);
            let failure = failure.with_outcome("not_repeated");
            host.decline(failure, &original, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        if let Some(told) = told_to_everybody(&message) {
            host.inform(&told, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        if is_news(&message) || is_alert(&message) || is_told(&message) || is_refusal(&message) {
            host.inform(&message, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        let Some(mut incoming) = message_to_answer(message) else {
            return Ok(self.ignore("no_response_required"));
        };
        let terms = match RequestTerms::of(&incoming, &host.card(), delivery.stored_at) {
            // The coordinator tells the sender; the request is not to be carried out as well.
            Some(Err(Inadmissible)) => return Ok(self.ignore("refused_by_coordinator")),
            Some(Ok(terms)) => Some(terms),
            None => None,
        };
        if let Some(terms) = &terms {
            incoming.deadline = Some(terms.due);
        }
        if host.breaks_loop(&incoming, delivery).await? {
            host.reject_loop(&incoming, delivery).await?;
            return Ok(self.ignore("loop_broken"));
        }
        let acknowledge = terms.is_some_and(|terms| terms.has_callback);
        host.handle(&incoming, delivery, acknowledge).await?;
        Ok(Ack::Acknowledge)
    }
}

impl<P: Ports, C: AgentCaller> InboxHandler<P, C> {
    fn ignore(&self, reason: &str) -> Ack {
        self.0.context.count_ignored(reason);
        Ack::Acknowledge
    }
}

/// The terms of a request of one agent to another.
struct RequestTerms {
    /// Until when an answer counts. After that the coordinator tells the sender that the time is over.
    due: Timestamp,
    /// Whether the request is acknowledged at once and completed later.
    has_callback: bool,
}

/// The coordinator refuses the request.
struct Inadmissible;

impl RequestTerms {
    /// The terms of a message. None where it is no request between agents.
    fn of(
        incoming: &Envelope,
        card: &Card,
        stored_at: Timestamp,
    ) -> Option<Result<Self, Inadmissible>> {
        if incoming.message_type != MessageType::Request || !is_of_agent(incoming) {
            return None;
        }
        let Ok(request) = incoming.payload::<Request>() else {
            return Some(Err(Inadmissible));
        };
        let due = admissibility::due(incoming, &request, stored_at);
        // A request to everyone is checked against no card.
        let is_for_it = incoming.to_agent == Recipient::Agent(card.agent_id.clone());
        let is_refused = admissibility::refusal(&request, due, stored_at).is_some()
            || is_for_it && admissibility::unfit(card, &request).is_some();
        Some(if is_refused {
            Err(Inadmissible)
        } else {
            Ok(Self {
                due,
                has_callback: request.callback_url.is_some(),
            })
        })
    }
}

/// The failure that a service reports to itself in place of a message that it could not write in the agent's dialect. The
/// agent knows nothing of that message and will not answer, so the service is told.
fn not_expressed(message: &Envelope) -> Option<Failure> {
    let is_of_service = Service::parse(message.from_agent.as_str()).is_ok();
    if !is_of_service || message.message_type != MessageType::Error {
        return None;
    }
    let report: ErrorReport = message.payload().ok()?;
    let is_about_itself =
        report.details.get("message_id")?.as_str()? == message.message_id.as_str();
    let why = report.error_message.trim_end_matches('.');
    is_about_itself.then(|| Failure::inexpressible(report.error_code, why.to_owned()))
}

/// What an agent is told of that waits for no answer: how a debate of its case has ended, what its case has decided, that this has changed
/// or has new figures, what became of somebody's credibility, what somebody in its case has learned that matters, and that a finding of its own was confirmed.
const NEWS: [(Service, &str); 9] = [
    (Service::AgentAdapter, DebateResolved::EVENT),
    (Service::AgentAdapter, CaseDecided::EVENT),
    (Service::Coordinator, DebateConcluded::EVENT),
    (Service::Coordinator, CaseDecisionChanged::EVENT),
    (Service::Coordinator, CaseFiguresRecorded::EVENT),
    (Service::Coordinator, FindingConfirmed::EVENT),
    (Service::Coordinator, InsightShared::EVENT),
    (Service::Coordinator, InsightsConsolidated::EVENT),
    (Service::DebateFacilitator, CredibilityChanged::EVENT),
];

fn is_news(message: &Envelope) -> bool {
    let Ok(from) = Service::parse(message.from_agent.as_str()) else {
        return false;
    };
    // Whoever joins a case late is told what it must know of it.
    if message.message_type == MessageType::SessionBriefing {
        return from == Service::Coordinator;
    }
    message.message_type == MessageType::Notification
        && NEWS.iter().any(|(service, _)| *service == from)
        && message
            .payload::<Notification>()
            .is_ok_and(|told| NEWS.contains(&(from, told.event.as_str())))
}

/// What another agent may tell an agent without an answer.
const TOLD: [MessageType; 5] = [
    MessageType::Notification,
    MessageType::InfoUpdate,
    MessageType::Handoff,
    MessageType::Status,
    MessageType::Error,
];

/// Whether another agent tells something, and waits for no answer.
fn is_told(message: &Envelope) -> bool {
    is_of_agent(message) && !message.requires_response && TOLD.contains(&message.message_type)
}

/// Whether a service refuses what the agent has said, or cannot do what it has asked for.
pub(crate) fn is_refusal(message: &Envelope) -> bool {
    message.message_type == MessageType::Error && !is_of_agent(message)
}

/// Whether no service has sent the message.
pub(crate) fn is_of_agent(message: &Envelope) -> bool {
    Service::parse(message.from_agent.as_str()).is_err()
}

/// Whether a service says it in a case. There are few such messages of a case, and of a flood of other agents thousands.
pub(crate) fn is_of_case(message: &Envelope) -> bool {
    message.case_id.is_some() && !is_of_agent(message)
}

/// Whether the coordinator alerts everybody.
pub(crate) fn is_alert(message: &Envelope) -> bool {
    message.message_type == MessageType::Alert
        && message.from_agent == Service::Coordinator.agent_id()
}

/// The message that an agent is to answer: one that waits for an answer, or one to somebody else that wakes the agent.
fn message_to_answer(message: Envelope) -> Option<Envelope> {
    use MessageType::{Challenge, Question};
    use MessageType::{CollaborationInvite, GroupQuery, PeerRequest, Request};
    if let Some(waking) = waking_message(&message) {
        return Some(waking);
    }
    let waits = message.requires_response
        || matches!(
            message.message_type,
            Request | GroupQuery | PeerRequest | CollaborationInvite | Question | Challenge
        );
    waits.then_some(message)
}

/// What an agent told everybody, if the adapter passes it on.
fn told_to_everybody(message: &Envelope) -> Option<Envelope> {
    let passed_on = of_adapter(message, PassedOn::EVENT)?;
    let PassedOn { message } = serde_json::from_value(passed_on.data).ok()?;
    serde_json::from_value(Value::Object(message)).ok()
}

/// The notification that wakes an agent, if the message is one.
fn wake_notification(message: &Envelope) -> Option<Notification> {
    of_adapter(message, Woken::EVENT)
}

/// The notification of the adapter with this event, if the message is one.
fn of_adapter(message: &Envelope, event: &str) -> Option<Notification> {
    if message.from_agent != Service::AgentAdapter.agent_id()
        || message.message_type != MessageType::Notification
    {
        return None;
    }
    message
        .payload()
        .ok()
        .filter(|notification: &Notification| notification.event == event)
}

/// The id, sender and type of a message that wakes an agent and was too large for the notification.
fn waking_message_left_out(message: &Envelope) -> Option<Envelope> {
    let mut notification = wake_notification(message)
        .filter(|notification| notification.data.get("message").is_none_or(Value::is_null))?;
    let original: Remembered =
        serde_json::from_value(notification.data.get_mut("said")?.take()).ok()?;
    let kind = MessageType::from(Token::new(original.message_type).ok()?);
    let original = Envelope::new(
        original.message_id,
        original.at,
        original.from,
        original.to,
        kind,
        Box::default(),
    );
    Some(Envelope {
        case_id: message.case_id.clone(),
        ..original
    })
}

/// The message that wakes an agent, with the earlier messages in the field `context`.
fn waking_message(message: &Envelope) -> Option<Envelope> {
    let mut notification = wake_notification(message)?;
    let mut original: Envelope =
        serde_json::from_value(notification.data.get_mut("message")?.take()).ok()?;
    for field in ["context", "reason", "score"] {
        let value = notification.data.get(field)?;
        original
            .extensions
            .insert(field, serde_json::value::to_raw_value(value).ok()?);
    }
    Some(original)
}

#[cfg(test)]
mod tests {
    use concord_wire::subject::SubjectSpace;
    use serde_json::{Value, json};

    use super::*;

    fn message(from: &str, kind: &str, requires_response: bool, payload: Value) -> Envelope {
        let bytes = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": "ann",
            "message_type": kind, "requires_response": requires_response, "payload": payload,
        });
        let subject = SubjectSpace::default()
            .parse(&format!("concord.v1.msg._.{from}.ann.{kind}"))
            .unwrap();
        Envelope::decode(bytes.to_string().as_bytes(), &subject).unwrap()
    }

    #[test]
    fn what_another_agent_tells_is_told_and_what_a_service_tells_only_if_it_is_news() {
        let told =
            |from: &str, kind: &str, waits: bool| is_told(&message(from, kind, waits, json!({})));
        for kind in ["notification", "info_update", "handoff", "status", "error"] {
            assert!(told("bob", kind, false), "{kind}");
            assert!(!told("bob", kind, true), "{kind} is answered");
            assert!(!told("coordinator", kind, false), "{kind}");
        }
        for kind in ["response", "acknowledgement", "finding", "request"] {
            assert!(!told("bob", kind, false), "{kind}");
        }
    }

    #[test]
    fn news_of_a_case_are_its_decision_its_figures_and_what_a_newcomer_must_know() {
        let event = |name: &str| json!({ "event": name, "data": {} });
        for (from, kind, payload, is) in [
            ("agent-adapter", "notification", event("case_decided"), true),
            (
                "coordinator",
                "notification",
                event("case_figures_recorded"),
                true,
            ),
            ("coordinator", "session_briefing", json!({}), true),
            ("bob", "session_briefing", json!({}), false),
            ("bob", "notification", event("case_decided"), false),
            ("coordinator", "notification", event("case_joined"), false),
        ] {
            let message = message(from, kind, false, payload);
            assert_eq!(is_news(&message), is, "{from}: {:?}", message.payload);
        }
    }

    #[test]
    fn an_error_of_a_service_is_told_to_whom_it_refuses() {
        let refused = json!({ "error_code": "INVALID_REQUEST", "error_message": "No such debate.", "details": {} });
        let error = message("debate-facilitator", "error", false, refused.clone());
        assert!(is_refusal(&error) && !is_news(&error));
        assert!(not_expressed(&error).is_none());
        // Of an agent it is told as well, and never where an answer is waited for.
        assert!(!is_refusal(&message("bob", "error", false, refused)));
    }

    #[test]
    fn what_waits_for_an_answer_is_acted_on_and_what_wakes_is_the_message_itself() {
        for (kind, requires, acted) in [
            ("question", true, true),
            ("info_update", false, false),
            ("request", false, true),
            ("peer_request", false, true),
            ("question", false, true),
            ("challenge", false, true),
        ] {
            assert_eq!(
                message_to_answer(message("bob", kind, requires, json!({}))).is_some(),
                acted,
                "{kind}"
            );
        }
        let said = json!({
            "message_id": "m-0", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "_any",
            "message_type": "group_query", "payload": { "content": "Who knows taxes?" },
        });
        let data = json!({ "message": said, "context": [{ "text": "Hello." }], "reason": "semantic:tax", "score": 0.9 });
        let woken = |from| {
            message(
                from,
                "notification",
                true,
                json!({ "event": "woken", "data": data }),
            )
        };
        let answered = message_to_answer(woken("agent-adapter")).unwrap();
        assert_eq!(
            (answered.message_id.as_str(), answered.from_agent.as_str()),
            ("m-0", "bob")
        );
        let written = serde_json::to_value(&answered).unwrap();
        assert_eq!(
            (&written["context"][0]["text"], &written["reason"]),
            (&json!("Hello."), &json!("semantic:tax"))
        );
        let data = json!({
            "message": null, "context": [], "reason": "mention", "score": null,
            "said": { "message_id": "m-9", "from": "bob", "to": "_any", "message_type": "group_query",
                      "at": "2026-11-21T20:00:00Z", "text": "Long." },
        });
        let too_much = message(
            "agent-adapter",
            "notification",
            true,
            json!({ "event": "woken", "data": data }),
        );
        let said = waking_message_left_out(&too_much).unwrap();
        assert_eq!(
            (said.message_id.as_str(), said.from_agent.as_str()),
            ("m-9", "bob")
        );
        assert!(waking_message_left_out(&woken("agent-adapter")).is_none());
        // Of anybody else it is a notification like any other.
        assert_eq!(
            message_to_answer(woken("eve")).unwrap().message_id.as_str(),
            "m-1"
        );
    }
}
