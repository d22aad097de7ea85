//! Responses to what a service has asked in a case: some dialects have one word for all answers, so what one is follows from what was asked.

use concord_wire::dialect::retyped;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{Envelope, MessageType, Recipient};
use serde_json::Value;

use crate::broker::Unavailable;
use crate::codec::message_lookup::SearchStart;
use crate::ports::{Ports, Search};

/// The message as an answer to what `service` has asked: a response that names the task of its case is a finding, and one that names a
/// question of a debate is an answer in it. Every other message, and a response that says that there is no answer, is as it came.
pub async fn as_asked<P: Ports>(
    ports: &P,
    service: Service,
    message: Envelope,
) -> Result<Envelope, Unavailable> {
    let (asking, answer) = match service {
        Service::Coordinator => (MessageType::TaskAssignment, MessageType::Finding),
        // Whether it agrees is said by its content.
        Service::DebateFacilitator => (MessageType::Question, MessageType::Disagreement),
        _ => return Ok(message),
    };
    if message.message_type != MessageType::Response
        || message.reply_to.is_none() && message.correlation_id.is_none()
        || declines(&message.payload().unwrap_or_default())
    {
        return Ok(message);
    }
    let Some(case) = &message.case_id else {
        return Ok(message);
    };
    for lane in Lane::ALL {
        // In a case an agent is asked a few times.
        let filter = ports.subjects().build(&Subject::Message {
            lane,
            case: Some(case.clone()),
            from: service.agent_id(),
            to: Recipient::Agent(message.from_agent.clone()),
            kind: asking.token(),
        });
        let is_asked = |asked: &Envelope, _| is_answered(asked, &message).then_some(());
        let search = Search::new(lane, &filter, SearchStart::Sequence(1));
        if ports.find_message(search, is_asked).await?.is_some() {
            return Ok(retyped(message, answer));
        }
    }
    Ok(message)
}

/// Whether a message names another as the one that it answers, or its debate.
fn is_answered(asked: &Envelope, message: &Envelope) -> bool {
    let id = Some(asked.message_id.as_str());
    let conversation = asked.correlation_id.as_deref();
    message.reply_to.as_deref() == id
        || message.correlation_id.as_deref() == id
        || message.correlation_id.is_some() && message.correlation_id.as_deref() == conversation
}

/// Whether an answer says that there is none: it has failed, or does not accept.
pub fn declines(payload: &Value) -> bool {
    let accepted = payload
        .pointer("/result/accepted")
        .or_else(|| payload.get("accepted"));
    let has_failed = payload.get("status").and_then(Value::as_str) == Some("failure");
    has_failed || accepted == Some(&Value::Bool(false))
}
