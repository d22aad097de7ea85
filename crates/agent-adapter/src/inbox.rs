//! The consumer's side of a hosted agent.

use std::sync::Arc;

use concord_domain::aggregates::request::admissibility;
use concord_events::Remembered;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceRunner;
use concord_wire::payload::notification::{EventData, Woken};
use concord_wire::payload::{Card, ErrorReport, Notification, Request};
use concord_wire::subject::Service;
use concord_wire::{Envelope, ErrorCode, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

use crate::failure::Failure;
use crate::hosted_agent::Host;

/// A hosted agent's messages.
pub(crate) struct Inbox {
    pub(crate) host: Arc<Host>,
    pub(crate) shell: ServiceRunner,
}

impl Handler for Inbox {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        // What another agent garbled is its own affair, and is in the transcript; the agent is not bothered with it.
        let heard = match delivery.read(&self.shell).await {
            Ok(heard) => Some(heard),
            Err(failed @ HandleError::Retry(_)) => return Err(failed),
            Err(_) => None,
        };
        if let Some((heard, failure)) = heard
            .as_ref()
            .and_then(|heard| Some((heard, unsaid(heard)?)))
        {
            self.host.decline(failure, heard, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        if let Some(said) = heard.as_ref().and_then(woken_by_too_much) {
            let why = "what was said is more than can be repeated to who is woken by it";
            let failure = Failure::here(ErrorCode::CapacityExceeded, why).named("not_repeated");
            self.host.decline(failure, &said, delivery).await?;
            return Ok(Ack::Acknowledge);
        }
        let Some(mut asked) = heard.and_then(asked) else {
            self.shell.count_ignored("no_response_required");
            return Ok(Ack::Acknowledge);
        };
        // One that the coordinator refuses ends there, and is not to be carried out as well.
        let terms = match Terms::of(&asked, &self.host.card(), delivery.stored_at) {
            Some(Err(())) => {
                self.shell.count_ignored("refused_by_coordinator");
                return Ok(Ack::Acknowledge);
            }
            Some(Ok(terms)) => Some(terms),
            None => None,
        };
        if let Some(terms) = &terms {
            asked.deadline = Some(terms.due);
        }
        if self.host.breaks(&asked, delivery).await? {
            self.shell.count_ignored("loop_broken");
            return self
                .host
                .refuse(&asked, delivery)
                .await
                .map(|()| Ack::Acknowledge);
        }
        let will_answer_later = terms.is_some_and(|terms| terms.has_callback);
        self.host
            .handle(&asked, delivery, will_answer_later)
            .await?;
        Ok(Ack::Acknowledge)
    }
}

/// What a request of one agent to another says of itself.
struct Terms {
    /// Until when an answer counts: whoever asked is told by the coordinator that it is over.
    due: Timestamp,
    /// Whether it is to be acknowledged at once, and is completed later.
    has_callback: bool,
}

impl Terms {
    /// None of what is no such request; an error of one that the coordinator refuses.
    fn of(asked: &Envelope, card: &Card, stored_at: Timestamp) -> Option<Result<Self, ()>> {
        if asked.message_type != MessageType::Request
            || Service::parse(asked.from_agent.as_str()).is_ok()
        {
            return None;
        }
        let Ok(request) = asked.payload::<Request>() else {
            return Some(Err(()));
        };
        let due = admissibility::due(asked, &request, stored_at);
        // Of what is for whoever can help, no card says what it has to be.
        let is_for_it = asked.to_agent == Recipient::Agent(card.agent_id.clone());
        let refused = admissibility::refusal(&request, due, stored_at).is_some()
            || is_for_it && admissibility::unfit(card, &request).is_some();
        Some(if refused {
            Err(())
        } else {
            Ok(Self {
                due,
                has_callback: request.callback_url.is_some(),
            })
        })
    }
}

/// Why a service could not say something in the agent's dialect, where it said so in its place: the agent, who knows nothing
/// of it, will not answer, and the service is not to wait for that.
fn unsaid(heard: &Envelope) -> Option<Failure> {
    let of_service = Service::parse(heard.from_agent.as_str()).is_ok();
    if !of_service || heard.message_type != MessageType::Error {
        return None;
    }
    let report: ErrorReport = heard.payload().ok()?;
    let itself = report.details.get("message_id")?.as_str()? == heard.message_id.as_str();
    let why = report.error_message.trim_end_matches('.');
    itself.then(|| Failure::unsaid(report.error_code, why.to_owned()))
}

/// What an agent is to act on: a message that waits for an answer, or one that was said to somebody else and wakes it.
fn asked(heard: Envelope) -> Option<Envelope> {
    use MessageType::{CollaborationInvite, GroupQuery, PeerRequest, Request};
    if let Some(said) = woken_by(&heard) {
        return Some(said);
    }
    let waits = heard.requires_response
        || matches!(
            heard.message_type,
            Request | GroupQuery | PeerRequest | CollaborationInvite
        );
    waits.then_some(heard)
}

/// That an agent is woken, where a message says so.
fn woken(heard: &Envelope) -> Option<Notification> {
    if heard.from_agent != Service::AgentAdapter.agent_id()
        || heard.message_type != MessageType::Notification
    {
        return None;
    }
    heard
        .payload()
        .ok()
        .filter(|notification: &Notification| notification.event == Woken::EVENT)
}

/// Of a message that wakes an agent and was too large to be repeated, who said it, and where.
fn woken_by_too_much(heard: &Envelope) -> Option<Envelope> {
    let mut notification = woken(heard)
        .filter(|notification| notification.data.get("message").is_none_or(Value::is_null))?;
    let said: Remembered =
        serde_json::from_value(notification.data.get_mut("said")?.take()).ok()?;
    let kind = MessageType::from(Token::new(said.message_type).ok()?);
    let said = Envelope::new(
        said.message_id,
        said.at,
        said.from,
        said.to,
        kind,
        Box::default(),
    );
    Some(Envelope {
        case_id: heard.case_id.clone(),
        ..said
    })
}

/// The message that wakes an agent, with what was said before in the field `context`.
fn woken_by(heard: &Envelope) -> Option<Envelope> {
    let mut notification = woken(heard)?;
    let mut said: Envelope =
        serde_json::from_value(notification.data.get_mut("message")?.take()).ok()?;
    for field in ["context", "reason", "score"] {
        let value = notification.data.get(field)?;
        said.extensions
            .insert(field, serde_json::value::to_raw_value(value).ok()?);
    }
    Some(said)
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
    fn what_waits_for_an_answer_is_acted_on_and_what_wakes_is_the_message_itself() {
        for (kind, requires, acted) in [
            ("question", true, true),
            ("info_update", false, false),
            ("request", false, true),
            ("peer_request", false, true),
        ] {
            assert_eq!(
                asked(message("bob", kind, requires, json!({}))).is_some(),
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
        let given = asked(woken("agent-adapter")).unwrap();
        assert_eq!(
            (given.message_id.as_str(), given.from_agent.as_str()),
            ("m-0", "bob")
        );
        let written = serde_json::to_value(&given).unwrap();
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
        let said = woken_by_too_much(&too_much).unwrap();
        assert_eq!(
            (said.message_id.as_str(), said.from_agent.as_str()),
            ("m-9", "bob")
        );
        assert!(woken_by_too_much(&woken("agent-adapter")).is_none());
        // Of anybody else it is a notification like any other.
        assert_eq!(asked(woken("eve")).unwrap().message_id.as_str(), "m-1");
    }
}
