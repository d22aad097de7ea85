//! Specification 2: `{id, sender_id, receiver_id, message_type, content, metadata, reply_to}`. Without a receiver it is
//! for everyone; there are six types, in upper case; any case is read.

use serde_json::value::RawValue;

use super::content;
use super::fields::Fields;
use super::free_metadata;
use super::overflow_fields::{Addressing, OverflowFields, finish, metadata, take_metadata};
use super::unnamed_action;
use crate::envelope::differs;
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageType, Recipient};

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let addressing = Addressing::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = addressing.envelope(subject, bytes);
    if let Some(id) = fields.take("id")? {
        envelope.message_id = id;
    }
    addressing.take_sender(&mut fields, "sender_id")?;
    match fields.take::<String>("receiver_id")? {
        Some(value) => addressing.check_recipient("/receiver_id", &value)?,
        None if addressing.is_broadcast() => {}
        None => {
            return Err(differs(
                "/receiver_id",
                "everyone, by naming none",
                addressing.to.as_str(),
            ));
        }
    }
    if let Some(value) = fields.take::<String>("message_type")?
        && !value.eq_ignore_ascii_case(performative(&addressing.kind).0)
        && !value.eq_ignore_ascii_case(addressing.kind.as_str())
    {
        return Err(differs(
            "/message_type",
            &value,
            performative(&addressing.kind).0,
        ));
    }
    envelope.reply_to = fields.take("reply_to")?;
    let mut metadata = fields.take_object("metadata")?;
    free_metadata::set_aside(&mut metadata)?;
    take_metadata(metadata, &addressing, &mut envelope)?;
    // Any JSON may be the content, and it may be missing.
    let content = fields
        .take_raw("content")
        .unwrap_or_else(|| RawValue::NULL.to_owned());
    let content = content::read(Some(&content), &addressing.kind, "/content")?;
    envelope.payload = unnamed_action::payload(content, &mut envelope)?;
    finish(fields, &addressing, envelope)
}

pub(super) fn write(envelope: &Envelope) -> Result<Fields, Fault> {
    let kind = &envelope.message_type;
    let (performative, usual) = performative(kind);
    let message_type = (*kind != usual).then(|| kind.clone());
    let overflow = OverflowFields {
        message_id: None,
        reply_to: None,
        message_type,
        ..OverflowFields::of(envelope)
    };
    let receiver = match &envelope.to_agent {
        Recipient::All => None,
        to => Some(to),
    };
    let mut fields = Fields::at("");
    fields.put("id", &envelope.message_id)?;
    fields.put("sender_id", &envelope.from_agent)?;
    fields.put("receiver_id", &receiver)?;
    fields.put("message_type", &performative)?;
    let content = unnamed_action::content(content::fields(&envelope.payload)?, envelope);
    fields.put_raw("content", content::write(content, kind)?)?;
    let mut metadata = metadata(envelope, overflow)?;
    free_metadata::put_back(&mut metadata)?;
    fields.put_raw("metadata", metadata.into_raw()?)?;
    fields.put("reply_to", &envelope.reply_to)?;
    fields.put_all(&envelope.extensions)?;
    Ok(fields)
}

/// The performative of a type: which of the six it is written as, and the type that this stands for without an overflow field.
pub(super) fn performative(kind: &MessageType) -> (&'static str, MessageType) {
    use MessageType as T;
    match kind {
        T::Request
        | T::TaskAssignment
        | T::Question
        | T::Challenge
        | T::GroupQuery
        | T::PeerRequest
        | T::CallForProposals
        | T::CollaborationInvite => ("REQUEST", T::Request),
        T::Notification
        | T::Alert
        | T::InfoUpdate
        | T::SessionBriefing
        | T::AgentJoined
        | T::ExpertiseOffer
        | T::Award
        | T::Unknown(_) => ("BROADCAST", T::Notification),
        T::Handoff => ("HANDOFF", T::Handoff),
        T::Status => ("STATUS", T::Status),
        T::Error => ("ERROR", T::Error),
        // All others report the result of something.
        _ => ("RESPONSE", T::Response),
    }
}
