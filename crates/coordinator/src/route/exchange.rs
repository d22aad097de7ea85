//! What agents ask each other for and answer, as inputs for requests.

use concord_domain::request::{ACKNOWLEDGE_MS, Refusal, RequestInput, Said, id_of, terms};
use concord_protocol::event::{AnswerForm, HeardAnswer, RequestAcknowledged, RequestOpened};
use concord_protocol::payload::{Card, ErrorReport, Request, Response};
use concord_protocol::{Envelope, Fault, MessageType, Recipient, Timestamp, Token};
use concord_runtime::route::digest_of;
pub use concord_runtime::route::is_between_agents;
use serde_json::Value;

/// The largest answer that is repeated to who asked with a callback, in bytes.
const REPEATED_BYTES_MAX: usize = 262_144;

/// Where a request is stored.
pub struct Place {
    /// Where in its stream.
    pub sequence: u64,
    /// Whether that is the stream of urgent messages.
    pub urgent: bool,
    /// When.
    pub at: Timestamp,
}

/// A request with its times, and why it cannot be carried out, if so.
pub fn read_request(envelope: &Envelope, place: &Place) -> Result<(RequestOpened, Option<Refusal>), Fault> {
    let request: Request = envelope.payload()?;
    let asynchronous = request.callback_url.is_some();
    let due = terms::due(envelope, &request, place.at);
    let refusal = terms::refusal(&request, due, place.at);
    let opened = RequestOpened {
        request_id: envelope.message_id.clone(),
        from: envelope.from_agent.clone(),
        to: envelope.to_agent.clone(),
        case_id: envelope.case_id.clone(),
        action: request.action.chars().take(256).collect(),
        asked_at: place.at,
        sequence: place.sequence,
        urgent: place.urgent,
        due,
        acknowledge_due: asynchronous.then(|| due.min(place.at.plus_millis(ACKNOWLEDGE_MS))),
        callback_url: request.callback_url.filter(|_| refusal.is_none()),
        digest: digest_of(envelope),
    };
    Ok((opened, refusal))
}

/// Why a request is not what the card of the agent that is asked says of the action, if so.
pub fn unfit(card: &Card, envelope: &Envelope) -> Result<Option<Refusal>, Fault> {
    // Most cards say nothing of actions, and reading a request twice is not free.
    if card.actions.is_empty() { Ok(None) } else { Ok(terms::unfit(card, &envelope.payload()?)) }
}

/// What a message says about a request; none when it is about something else.
pub fn hear(envelope: &Envelope, at: Timestamp) -> Result<Option<(Token, RequestInput)>, Fault> {
    let Some((id, said)) = heard(envelope, at)? else { return Ok(None) };
    Ok(Some((id, RequestInput::Hear(Box::new(said)))))
}

/// An acknowledgement or answer, with the request that it is for.
pub fn heard(envelope: &Envelope, at: Timestamp) -> Result<Option<(Token, Said)>, Fault> {
    let Recipient::Agent(asker) = &envelope.to_agent else { return Ok(None) };
    // The message that is answered is surer than the conversation that it belongs to.
    let Some(request_id) = envelope.reply_to.as_ref().or(envelope.correlation_id.as_ref()) else { return Ok(None) };
    let (by, message_id) = (envelope.from_agent.clone(), envelope.message_id.clone());
    let answer = |form, status, error_code| {
        let repeated = envelope.payload.get().len() <= REPEATED_BYTES_MAX;
        let payload = repeated.then(|| envelope.payload::<Value>().ok()).flatten().unwrap_or_default();
        let (by, message_id) = (by.clone(), message_id.clone());
        Said::Answer(HeardAnswer { by, message_id, form, at, status, error_code, payload })
    };
    let said = match &envelope.message_type {
        MessageType::Acknowledgement => {
            Said::Acknowledgement(RequestAcknowledged { by: by.clone(), message_id: message_id.clone(), at })
        }
        // Whoever asked has it already, whatever it looks like: not every dialect's answers say how it went. Neither does an
        // error need a code of ours to end a request.
        MessageType::Response => {
            let status = envelope.payload::<Response>().ok().map(|response| response.status);
            answer(AnswerForm::Response, status, None)
        }
        MessageType::Error => {
            let code = envelope.payload::<ErrorReport>().ok().map(|report| report.error_code);
            answer(AnswerForm::Error, None, code)
        }
        MessageType::Notification => answer(AnswerForm::Notification, None, None),
        _ => return Ok(None),
    };
    Ok(Some((id_of(asker, request_id), said)))
}
