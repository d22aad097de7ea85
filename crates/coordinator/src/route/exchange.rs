//! What agents ask each other for and answer, as inputs for requests.

use concord_domain::aggregates::request::{
    ACKNOWLEDGE_MS, Refusal, Reply, RequestInput, admissibility, id_of,
};
use concord_events::{AnswerForm, HeardAnswer, RequestAcknowledged, RequestOpened};
use concord_runtime::delivery::route::digest_of;
pub use concord_runtime::delivery::route::is_between_agents;
use concord_wire::fault::with_article;
use concord_wire::payload::notification::{AnsweredLate, EventData, is_progress};
use concord_wire::payload::{Card, ErrorReport, Notification, Request, Response, ResponseStatus};
use concord_wire::{Envelope, Fault, MessageType, Recipient, Timestamp, Token};
use serde_json::Value;

/// The largest answer that is repeated to who asked with a callback, in bytes.
const REPEATED_BYTES_MAX: usize = 262_144;

/// Where a request is stored.
pub struct RequestPosition {
    /// Where in its stream.
    pub sequence: u64,
    /// Whether that is the stream of urgent messages.
    pub urgent: bool,
    /// When.
    pub at: Timestamp,
}

/// A request with its times, and why it cannot be carried out, if so.
pub fn read_request(
    envelope: &Envelope,
    position: &RequestPosition,
) -> Result<(RequestOpened, Option<Refusal>), Fault> {
    let request: Request = envelope.payload()?;
    let asynchronous = request.callback_url.is_some();
    let due = admissibility::due(envelope, &request, position.at);
    let refusal = admissibility::refusal(&request, due, position.at);
    let opened = RequestOpened {
        request_id: envelope.message_id.clone(),
        from: envelope.from_agent.clone(),
        to: envelope.to_agent.clone(),
        case_id: envelope.case_id.clone(),
        action: request.action.chars().take(256).collect(),
        asked_at: position.at,
        sequence: position.sequence,
        urgent: position.urgent,
        due,
        acknowledge_due: asynchronous.then(|| due.min(position.at.plus_millis(ACKNOWLEDGE_MS))),
        callback_url: request.callback_url.filter(|_| refusal.is_none()),
        digest: digest_of(envelope),
    };
    Ok((opened, refusal))
}

/// Why a request is not what the card of the agent that is asked says of the action, if so.
pub fn refusal_by_card(card: &Card, envelope: &Envelope) -> Result<Option<Refusal>, Fault> {
    // Most cards say nothing of actions, and reading a request twice is not free.
    if card.actions.is_empty() {
        Ok(None)
    } else {
        Ok(admissibility::unfit(card, &envelope.payload()?))
    }
}

/// What a message says about a request; none when it is about something else.
pub fn answer_input(
    envelope: &Envelope,
    at: Timestamp,
) -> Result<Option<(Token, RequestInput)>, Fault> {
    let Some((id, said)) = read_answer(envelope, at)? else {
        return Ok(None);
    };
    Ok(Some((id, RequestInput::Reply(Box::new(said)))))
}

/// An answer that came too late and was kept from who asked, where a message to the coordinator says so.
pub fn withheld_answer(
    envelope: &Envelope,
    at: Timestamp,
) -> Result<Option<(Token, RequestInput)>, Fault> {
    if envelope.message_type != MessageType::Notification {
        return Ok(None);
    }
    // News of any other kind are for people and other agents, whatever they look like.
    let Ok(mut notification) = envelope.payload::<Notification>() else {
        return Ok(None);
    };
    if notification.event != AnsweredLate::EVENT {
        return Ok(None);
    }
    let message = notification
        .data
        .get_mut("message")
        .map(Value::take)
        .unwrap_or_default();
    let answer = serde_json::from_value::<Envelope>(message)
        .map_err(|error| no_answer(error.to_string()))?;
    if answer.from_agent != envelope.from_agent {
        return Err(no_answer(format!("it is of {}", answer.from_agent)));
    }
    let Some((id, Reply::Answer(heard))) = read_answer(&answer, at)? else {
        return Err(no_answer(format!(
            "{} answers no request",
            with_article(answer.message_type.as_str())
        )));
    };
    let message_id = envelope.message_id.clone();
    Ok(Some((
        id,
        RequestInput::Reply(Box::new(Reply::Withheld(HeardAnswer {
            message_id,
            ..heard
        }))),
    )))
}

fn no_answer(why: String) -> Fault {
    Fault::invalid(
        "/payload/data/message",
        format!("This is no answer of yours to a request: {why}."),
        "Give the whole message with which you would have answered whoever asked.",
    )
}

/// Whether a message says that a request has arrived and is worked on.
fn is_receipt(envelope: &Envelope) -> bool {
    envelope.message_type == MessageType::Acknowledgement || is_progress(envelope)
}

/// An acknowledgement or answer, with the request that it is for.
pub fn read_answer(envelope: &Envelope, at: Timestamp) -> Result<Option<(Token, Reply)>, Fault> {
    let Recipient::Agent(asker) = &envelope.to_agent else {
        return Ok(None);
    };
    // The message that is answered is surer than the conversation that it belongs to.
    let Some(request_id) = envelope
        .reply_to
        .as_ref()
        .or(envelope.correlation_id.as_ref())
    else {
        return Ok(None);
    };
    let (by, message_id) = (envelope.from_agent.clone(), envelope.message_id.clone());
    let answer = |form, status, error_code| {
        let repeated = envelope.payload.get().len() <= REPEATED_BYTES_MAX;
        let payload = repeated
            .then(|| envelope.payload::<Value>().ok())
            .flatten()
            .unwrap_or_default();
        let (by, message_id) = (by.clone(), message_id.clone());
        Reply::Answer(HeardAnswer {
            by,
            message_id,
            form,
            at,
            status,
            error_code,
            payload,
        })
    };
    let said = match &envelope.message_type {
        // Whoever tells of its progress has the request, and has not answered it.
        _ if is_receipt(envelope) => Reply::Acknowledgement(RequestAcknowledged {
            by: by.clone(),
            message_id: message_id.clone(),
            at,
        }),
        // Whoever asked has it already, whatever it looks like: not every dialect's answers say how it went. Neither does an
        // error need a code of ours to end a request.
        MessageType::Response | MessageType::TaskResult => {
            let status = envelope
                .payload::<Response>()
                .ok()
                .map(|response| response.status);
            answer(AnswerForm::Response, status, None)
        }
        // Whoever refuses has answered: nothing else comes.
        MessageType::Refuse => answer(AnswerForm::Response, Some(ResponseStatus::Failure), None),
        MessageType::Error => {
            let code = envelope
                .payload::<ErrorReport>()
                .ok()
                .map(|report| report.error_code);
            answer(AnswerForm::Error, None, code)
        }
        MessageType::Notification => answer(AnswerForm::Notification, None, None),
        _ => return Ok(None),
    };
    Ok(Some((id_of(asker, request_id), said)))
}

#[cfg(test)]
mod tests {
    use concord_wire::subject::SubjectSpace;
    use serde_json::json;

    use super::*;

    fn notice(event: &str, answer: Value) -> Envelope {
        let bytes = json!({
            "message_id": "m-9", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "coordinator",
            "message_type": "notification", "payload": { "event": event, "data": { "message": answer } },
        });
        let subject = SubjectSpace::default()
            .parse("concord.v1.msg._.bob.coordinator.notification")
            .unwrap();
        Envelope::decode(bytes.to_string().as_bytes(), &subject).unwrap()
    }

    #[test]
    fn progress_acknowledges_a_request_and_any_other_notification_answers_it() {
        let at = Timestamp::from_unix_millis(0);
        let said = |event: &str| {
            let told = Envelope {
                to_agent: Recipient::new("ann").unwrap(),
                reply_to: Some("m-ask".into()),
                ..notice(event, json!({ "pct": 10 }))
            };
            read_answer(&told, at).unwrap().unwrap().1
        };
        assert!(matches!(said("progress"), Reply::Acknowledgement(_)));
        for event in ["complete", "in progress", "Progress", ""] {
            assert!(matches!(said(event), Reply::Answer(_)), "{event}");
        }
    }

    #[test]
    fn a_result_of_a_task_answers_a_request_and_a_refusal_is_an_answer_that_failed() {
        use concord_wire::payload::ResponseStatus::{Failure, Partial};
        for (kind, payload, status) in [
            ("task_result", json!({ "content": "Yes." }), None),
            ("task_result", json!({ "status": "partial" }), Some(Partial)),
            ("refuse", json!({ "why": "Not my field." }), Some(Failure)),
        ] {
            let said = Envelope {
                to_agent: Recipient::new("ann").unwrap(),
                message_type: Token::new(kind).unwrap().into(),
                reply_to: Some("m-ask".into()),
                payload: serde_json::value::to_raw_value(&payload).unwrap(),
                ..notice("x", json!({}))
            };
            let read = read_answer(&said, Timestamp::from_unix_millis(0)).unwrap();
            let Some((_, Reply::Answer(heard))) = read else {
                panic!("{kind}: {read:?}")
            };
            assert_eq!(
                (heard.form, heard.status),
                (AnswerForm::Response, status),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_answer_that_was_kept_is_heard_of_whoever_gave_it_alone() {
        let answer = |from: &str, kind: &str| {
            json!({
                "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": from, "to_agent": "ann",
                "message_type": kind, "reply_to": "m-ask", "payload": { "status": "success" },
            })
        };
        let at = Timestamp::from_unix_millis(0);
        let (id, input) =
            withheld_answer(&notice(AnsweredLate::EVENT, answer("bob", "response")), at)
                .unwrap()
                .unwrap();
        assert_eq!(id, id_of(&"ann".parse().unwrap(), "m-ask"));
        let RequestInput::Reply(said) = input else {
            panic!("{input:?}")
        };
        let Reply::Withheld(heard) = *said else {
            panic!("{said:?}")
        };
        assert_eq!(
            (heard.by.as_str(), heard.message_id.as_str()),
            ("bob", "m-9"),
            "the message that is stored"
        );
        for wrong in [
            answer("eve", "response"),
            answer("bob", "question"),
            answer("bob", "acknowledgement"),
            json!(7),
        ] {
            let fault = withheld_answer(&notice(AnsweredLate::EVENT, wrong), at).unwrap_err();
            assert_eq!(fault.pointer, "/payload/data/message", "{fault}");
        }
        assert!(
            withheld_answer(&notice("lunch", json!(7)), at)
                .unwrap()
                .is_none()
        );
    }
}
