//! Specification 4: `{interaction_type, source_agent_id, target_agent_id, conversation_id, content, reply_to_message_id,
//! metadata}`. Types are in upper case, the content is a text, a conversation is a case.

use super::content;
use super::fields::Fields;
use super::overflow_fields::{Carried, Told, finish, metadata, stated, take_metadata, written};
use crate::envelope::differs;
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageType, Recipient};

/// A word of the specification's for a query to the group.
const BROADCAST_QUERY: &str = "BROADCAST_QUERY";

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let told = Told::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = told.envelope(subject, bytes);
    if let Some(said) = fields.take::<String>("interaction_type")?
        && said != told.kind.as_str().to_ascii_uppercase()
        && (said != BROADCAST_QUERY || told.kind != MessageType::GroupQuery)
    {
        return Err(differs(
            "/interaction_type",
            &said,
            &told.kind.as_str().to_ascii_uppercase(),
        ));
    }
    told.take_sender(&mut fields, "source_agent_id")?;
    // Said to be none is everyone, or whoever can help; not said at all is whoever the subject names.
    let says_none = fields
        .get("target_agent_id")
        .is_some_and(|target| target.get() == "null");
    match fields.take::<String>("target_agent_id")? {
        Some(said) => told.check_recipient("/target_agent_id", &said)?,
        None if says_none && !told.is_broadcast() => {
            return Err(differs(
                "/target_agent_id",
                "everyone, by naming none",
                told.to.as_str(),
            ));
        }
        None => {}
    }
    told.take_case(&mut fields, "conversation_id")?;
    envelope.reply_to = fields.take("reply_to_message_id")?;
    take_metadata(&mut fields, &told, &mut envelope)?;
    let content = content::read_text(
        fields.take_raw("content").as_deref(),
        &told.kind,
        "/content",
    )?;
    envelope.payload = content.into_raw()?;
    finish(fields, &told, envelope)
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
    let carried = Carried {
        message_id: None,
        timestamp: None,
        case_id: None,
        reply_to: None,
        ..Carried::of(envelope)
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
    if let Some(at) = stated(envelope.timestamp) {
        fields.put("timestamp", &written(at))?;
    }
    fields.put_raw(
        "content",
        content::write_text(content::fields(&envelope.payload)?, kind, "/payload")?,
    )?;
    fields.put_raw("metadata", metadata(envelope, carried)?)?;
    fields.put_all(&envelope.extensions)?;
    Ok(fields)
}
