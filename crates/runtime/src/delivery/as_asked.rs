//! Responses to what a service has asked in a case: some dialects have one word for all answers, so what one is follows from what was asked.

use concord_wire::dialect::retyped;
use concord_wire::payload::{MEDIATE, action_of};
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{Envelope, MessageType, Recipient};
use serde_json::Value;

use crate::broker::Unavailable;
use crate::codec::message_lookup::SearchStart;
use crate::ports::{Ports, Search};

/// The message as an answer to what `service` has asked: a response that names the task of its case is a finding, one that names a question
/// of a debate is an answer in it, and one that names a challenge, or the request for a mediator's opinion, is evidence. Every other message,
/// and a response that says that there is no answer, is as it came.
pub async fn as_asked<P: Ports>(
    ports: &P,
    service: Service,
    message: Envelope,
) -> Result<Envelope, Unavailable> {
    let asking: &[MessageType] = match service {
        Service::Coordinator => &[MessageType::TaskAssignment],
        Service::DebateFacilitator => &[
            MessageType::Question,
            MessageType::Challenge,
            MessageType::Request,
        ],
        _ => return Ok(message),
    };
    if message.message_type != MessageType::Response
        || message.reply_to.is_none() && message.correlation_id.is_none()
        || declines(&message.payload().unwrap_or_default())
    {
        return Ok(message);
    }
    // What names the message itself is surer than what names the debate: in one a party may be asked for several things.
    let ways: [Names; 2] = [names_message, names_conversation];
    for names in ways {
        for kind in asking {
            let answer = find_asked(ports, (service, kind), &message, names).await?;
            if let Some(answer) = answer {
                return Ok(retyped(message, answer));
            }
        }
    }
    Ok(message)
}

/// Whether a message names another as the one that it answers.
type Names = fn(&Envelope, &Envelope) -> bool;

/// The type of an answer to what a service has asked by a message of one type that an answer names, where it has.
async fn find_asked<P: Ports>(
    ports: &P,
    (service, kind): (Service, &MessageType),
    message: &Envelope,
    names: Names,
) -> Result<Option<MessageType>, Unavailable> {
    let Some(case) = &message.case_id else {
        return Ok(None);
    };
    for lane in Lane::ALL {
        // In a case an agent is asked a few times.
        let filter = ports.subjects().build(&Subject::Message {
            lane,
            case: Some(case.clone()),
            from: service.agent_id(),
            to: Recipient::Agent(message.from_agent.clone()),
            kind: kind.token(),
        });
        let is_asked =
            |asked: &Envelope, _| answer_to(asked, message).filter(|_| names(message, asked));
        let search = Search::new(lane, &filter, SearchStart::Sequence(1));
        if let Some(answer) = ports.find_message(search, is_asked).await? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// The type of the answer that a message of a service asks for. Requests ask for other things than an opinion, too.
fn answer_to(asked: &Envelope, message: &Envelope) -> Option<MessageType> {
    Some(match asked.message_type {
        MessageType::TaskAssignment => MessageType::Finding,
        // Whether it agrees is said by its content.
        MessageType::Question => MessageType::Disagreement,
        // Whoever is challenged may answer with a position in place of evidence.
        MessageType::Challenge if states_position(message) => MessageType::Disagreement,
        MessageType::Challenge => MessageType::Evidence,
        MessageType::Request => {
            let is_mediation = action_of(asked).is_ok_and(|action| action == MEDIATE);
            return is_mediation.then_some(MessageType::Evidence);
        }
        _ => return None,
    })
}

fn states_position(message: &Envelope) -> bool {
    let said: Value = message
        .clone()
        .without_response_form()
        .payload()
        .unwrap_or_default();
    ["agrees_with_peer", "revised_position"]
        .into_iter()
        .any(|name| said.get(name).is_some_and(|value| !value.is_null()))
}

fn names_message(message: &Envelope, asked: &Envelope) -> bool {
    let id = Some(asked.message_id.as_str());
    message.reply_to.as_deref() == id || message.correlation_id.as_deref() == id
}

fn names_conversation(message: &Envelope, asked: &Envelope) -> bool {
    message.correlation_id.is_some() && message.correlation_id == asked.correlation_id
}

/// Whether an answer says that there is none: it has failed, or does not accept.
pub fn declines(payload: &Value) -> bool {
    let accepted = payload
        .pointer("/result/accepted")
        .or_else(|| payload.get("accepted"));
    let has_failed = payload.get("status").and_then(Value::as_str) == Some("failure");
    has_failed || accepted == Some(&Value::Bool(false))
}
