//! The consumer's side of a hosted agent.

use std::sync::Arc;

use concord_domain::effect::WOKEN;
use concord_protocol::payload::{ErrorReport, Notification};
use concord_protocol::subject::Service;
use concord_protocol::{Envelope, MessageType};
use concord_runtime::consume::{Delivery, Done, Handler, Problem};
use concord_runtime::dialect;
use concord_runtime::service::Shell;

use crate::failure::Failure;
use crate::host::Host;

/// A hosted agent's messages.
pub(crate) struct Inbox {
    pub(crate) host: Arc<Host>,
    pub(crate) shell: Shell,
}

impl Handler for Inbox {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        // What another agent garbled is its own affair, and is in the transcript; the agent is not bothered with it.
        let heard = match dialect::envelope(&self.shell, delivery).await {
            Ok(heard) => Some(heard),
            Err(failed @ Problem::Failed(_)) => return Err(failed),
            Err(_) => None,
        };
        if let Some((heard, failure)) = heard.as_ref().and_then(|heard| Some((heard, unsaid(heard)?))) {
            self.host.decline(failure, heard, delivery).await?;
            return Ok(Done::Acknowledge);
        }
        let Some(asked) = heard.and_then(asked) else {
            self.shell.count_ignored("no_response_required");
            return Ok(Done::Acknowledge);
        };
        if self.host.breaks(&asked, delivery).await? {
            self.shell.count_ignored("loop_broken");
            return self.host.refuse(&asked, delivery).await.map(|()| Done::Acknowledge);
        }
        self.host.handle(&asked, delivery).await?;
        Ok(Done::Acknowledge)
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
        || matches!(heard.message_type, Request | GroupQuery | PeerRequest | CollaborationInvite);
    waits.then_some(heard)
}

/// The message that wakes an agent, with what was said before in the field `context`.
fn woken_by(heard: &Envelope) -> Option<Envelope> {
    if heard.from_agent != Service::AgentAdapter.agent_id() || heard.message_type != MessageType::Notification {
        return None;
    }
    let mut notification: Notification = heard.payload().ok()?;
    if notification.event != WOKEN {
        return None;
    }
    let mut said: Envelope = serde_json::from_value(notification.data.get_mut("message")?.take()).ok()?;
    for field in ["context", "reason", "score"] {
        let value = notification.data.get(field)?;
        said.extensions.insert(field, serde_json::value::to_raw_value(value).ok()?);
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use concord_protocol::subject::SubjectSpace;
    use serde_json::{Value, json};

    use super::*;

    fn message(from: &str, kind: &str, requires_response: bool, payload: Value) -> Envelope {
        let bytes = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": "ann",
            "message_type": kind, "requires_response": requires_response, "payload": payload,
        });
        let subject = SubjectSpace::default().parse(&format!("concord.v1.msg._.{from}.ann.{kind}")).unwrap();
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
            assert_eq!(asked(message("bob", kind, requires, json!({}))).is_some(), acted, "{kind}");
        }
        let said = json!({
            "message_id": "m-0", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "_any",
            "message_type": "group_query", "payload": { "content": "Who knows taxes?" },
        });
        let data =
            json!({ "message": said, "context": [{ "text": "Hello." }], "reason": "semantic:tax", "score": 0.9 });
        let woken = |from| message(from, "notification", true, json!({ "event": "woken", "data": data }));
        let given = asked(woken("agent-adapter")).unwrap();
        assert_eq!((given.message_id.as_str(), given.from_agent.as_str()), ("m-0", "bob"));
        let written = serde_json::to_value(&given).unwrap();
        assert_eq!((&written["context"][0]["text"], &written["reason"]), (&json!("Hello."), &json!("semantic:tax")));
        // Of anybody else it is a notification like any other.
        assert_eq!(asked(woken("eve")).unwrap().message_id.as_str(), "m-1");
    }
}
