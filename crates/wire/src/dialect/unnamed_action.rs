//! Requests without an action, which specifications 2 and 3 know nothing of: what they say is asked for by [`DEFAULT_ACTION`].

use serde_json::value::RawValue;

use super::fields::Fields;
use super::overflow_fields::OVERFLOW_FIELD;
use crate::fault::Fault;
use crate::{Envelope, MessageType, Timestamp};

/// The action of a request that names none, in the dialects that have no field for it. The content is its parameters.
pub const DEFAULT_ACTION: &str = "ask";

/// The payload for a content. A deadline in a request without an action is that of the message, if it is a time.
pub(super) fn payload(content: Fields, envelope: &mut Envelope) -> Result<Box<RawValue>, Fault> {
    if envelope.message_type != MessageType::Request || content.has("action") {
        return content.into_raw();
    }
    envelope.deadline = envelope.deadline.or_else(|| deadline(&content));
    let mut request = Fields::at("/payload");
    request.put("action", &DEFAULT_ACTION)?;
    request.put_raw("parameters", content.into_raw()?)?;
    request.into_raw()
}

/// The content for a payload: the parameters alone where reading gives them the action again.
pub(super) fn content(payload: Fields, envelope: &Envelope) -> Fields {
    if envelope.message_type != MessageType::Request
        || !payload.names().eq(["action", "parameters"])
    {
        return payload;
    }
    let action = payload.get("action").map(RawValue::get);
    let parameters = payload.get("parameters").and_then(|parameters| {
        Fields::parse(parameters.get().as_bytes(), "/payload/parameters").ok()
    });
    let is_alike = |content: &Fields| {
        action.and_then(|action| serde_json::from_str(action).ok()) == Some(DEFAULT_ACTION)
            && !content.has("action")
            && !content.has(OVERFLOW_FIELD)
            && (envelope.deadline.is_some() || deadline(content).is_none())
    };
    parameters.filter(is_alike).unwrap_or(payload)
}

fn deadline(content: &Fields) -> Option<Timestamp> {
    let written = content.get("deadline")?;
    serde_json::from_str(written.get()).ok()
}
