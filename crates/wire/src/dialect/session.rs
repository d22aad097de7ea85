//! Specification 4: `{interaction_type, source_agent_id, target_agent_id, conversation_id, content, reply_to_message_id,
//! metadata}`. Types are in upper case, the content is a text, a conversation is a case.

use super::content;
use super::fields::Fields;
use super::overflow_fields::{
    Addressing, OverflowFields, finish, known_time, metadata, take_metadata, time_text,
};
use crate::envelope::differs;
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageType, Recipient};

/// The other name that the specification has for a query to the group.
const BROADCAST_QUERY: &str = "BROADCAST_QUERY";

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let addressing = Addressing::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = addressing.envelope(subject, bytes);
    if let Some(value) = fields.take::<String>("interaction_type")?
        && value != addressing.kind.as_str().to_ascii_uppercase()
        && (value != BROADCAST_QUERY || addressing.kind != MessageType::GroupQuery)
    {
        return Err(differs(
            "/interaction_type",
            &value,
            &addressing.kind.as_str().to_ascii_uppercase(),
        ));
    }
    addressing.take_sender(&mut fields, "source_agent_id")?;
    // `null` means everyone or whoever can help; a missing field means the recipient of the subject.
    let is_null = fields
        .get("target_agent_id")
        .is_some_and(|target| target.get() == "null");
    match fields.take::<String>("target_agent_id")? {
        Some(value) => addressing.check_recipient("/target_agent_id", &value)?,
        None if is_null && !addressing.is_broadcast() => {
            return Err(differs(
                "/target_agent_id",
                "everyone, by naming none",
                addressing.to.as_str(),
            ));
        }
        None => {}
    }
    addressing.take_case(&mut fields, "conversation_id")?;
    envelope.reply_to = fields.take("reply_to_message_id")?;
    take_metadata(fields.take_object("metadata")?, &addressing, &mut envelope)?;
    let content = content::read_text(
        fields.take_raw("content").as_deref(),
        &addressing.kind,
        "/content",
    )?;
    envelope.payload = content.into_raw()?;
    finish(fields, &addressing, envelope)
}

pub(super) fn write(envelope: &Envelope) -> Result<Fields, Fault> {
    let kind = &envelope.message_type;
    let upper = kind.as_str().to_ascii_uppercase();
    if upper.to_ascii_lowercase() != kind.as_str() {
        let what = format!("{kind} cannot be written in upper case and back.");
        return Err(Fault::invalid(
            "/message_type",
            what,
            "Name types in lower case.",
        ));
    }
    let target = match &envelope.to_agent {
        Recipient::Agent(agent) => Some(agent),
        Recipient::All | Recipient::Any => None,
    };
    let overflow = OverflowFields {
        message_id: None,
        timestamp: None,
        case_id: None,
        reply_to: None,
        ..OverflowFields::of(envelope)
    };
    let mut fields = Fields::at("");
    fields.put("message_id", &envelope.message_id)?;
    fields.put("interaction_type", &upper)?;
    fields.put("source_agent_id", &envelope.from_agent)?;
    fields.put("target_agent_id", &target)?;
    if let Some(case) = &envelope.case_id {
        fields.put("conversation_id", case)?;
    }
    if let Some(reply_to) = &envelope.reply_to {
        fields.put("reply_to_message_id", reply_to)?;
    }
    if let Some(at) = known_time(envelope.timestamp) {
        fields.put("timestamp", &time_text(at))?;
    }
    fields.put_raw(
        "content",
        content::write_text(content::fields(&envelope.payload)?, kind, "/payload")?,
    )?;
    fields.put_raw("metadata", metadata(envelope, overflow)?.into_raw()?)?;
    fields.put_all(&envelope.extensions)?;
    Ok(fields)
}
