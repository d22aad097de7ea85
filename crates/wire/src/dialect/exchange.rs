//! Specification 5: the canonical envelope without what Concord added; there are four types.

use super::collaboration;
use super::fields::Fields;
use super::overflow_fields::{
    Addressing, OverflowFields, finish, known_time, metadata, take_metadata, time_text,
};
use crate::envelope::{differs, not_an_object};
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageType, Priority};

/// The types that the dialect has.
pub(super) const TYPES: [&str; 4] = ["request", "response", "notification", "error"];

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let addressing = Addressing::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = addressing.envelope(subject, bytes);
    // The standard actions are printed as a request's payload alone.
    if addressing.kind == MessageType::Request && fields.has("action") && !fields.has("payload") {
        envelope.payload = fields.into_raw()?;
        return Ok(envelope);
    }
    if let Some(value) = fields.take::<String>("message_type")?
        && value != performative(&addressing.kind).0
        && value != addressing.kind.as_str()
    {
        return Err(differs(
            "/message_type",
            &value,
            performative(&addressing.kind).0,
        ));
    }
    match fields.take_raw("payload") {
        Some(payload) if payload.get().starts_with('{') => envelope.payload = payload,
        Some(_) => return Err(not_an_object("/payload")),
        None => {
            return Err(Fault::invalid(
                "/payload",
                "There is no payload.",
                "Send an object; an empty one will do.",
            ));
        }
    }
    // The fields of the dialect first: overflow fields may state them more precisely.
    OverflowFields::take_canonical_without_metadata(&mut fields)?.apply(
        &addressing,
        "",
        &mut envelope,
    )?;
    take_metadata(fields.take_object("metadata")?, &addressing, &mut envelope)?;
    finish(fields, &addressing, envelope)
}

pub(super) fn write(envelope: &Envelope) -> Result<Fields, Fault> {
    let (performative, usual) = performative(&envelope.message_type);
    let message_type = (envelope.message_type != usual).then(|| envelope.message_type.clone());
    // The highest priority of the dialect; the overflow fields have the exact one.
    let is_highest = envelope.priority == Priority::SystemCritical;
    let priority = if is_highest {
        Priority::Critical
    } else {
        envelope.priority
    };
    let overflow = OverflowFields {
        message_id: None,
        timestamp: None,
        message_type,
        correlation_id: None,
        priority: is_highest.then_some(envelope.priority),
        ..OverflowFields::of(envelope)
    };
    let mut fields = Fields::at("");
    fields.put("message_id", &envelope.message_id)?;
    if let Some(at) = known_time(envelope.timestamp) {
        fields.put("timestamp", &time_text(at))?;
    }
    fields.put("from_agent", &envelope.from_agent)?;
    fields.put("to_agent", &envelope.to_agent)?;
    fields.put("message_type", &performative)?;
    if let Some(correlation) = &envelope.correlation_id {
        fields.put("correlation_id", correlation)?;
    }
    fields.put("priority", &priority)?;
    fields.put_raw("payload", envelope.payload.clone())?;
    fields.put_raw("metadata", metadata(envelope, overflow)?.into_raw()?)?;
    fields.put_all(&envelope.extensions)?;
    Ok(fields)
}

/// Which of the four types a type is written as, and the type that this stands for without an overflow field.
fn performative(kind: &MessageType) -> (&'static str, MessageType) {
    match collaboration::performative(kind).1 {
        MessageType::Request | MessageType::Handoff => ("request", MessageType::Request),
        MessageType::Response => ("response", MessageType::Response),
        MessageType::Error => ("error", MessageType::Error),
        _ => ("notification", MessageType::Notification),
    }
}
