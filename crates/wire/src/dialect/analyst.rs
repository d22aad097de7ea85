//! Specification 3: `{from_agent, to_agent, message_type, priority, content, timestamp, requires_response}`, and the
//! format of a challenge. A message has no id; everyone is `all`; a finding's words and confidence are in its content.

use super::content;
use super::fields::Fields;
use super::overflow_fields::{Addressing, OverflowFields, finish, known_time, time_text};
use super::unnamed_action;
use crate::envelope::Metadata;
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageType, Recipient};

/// The name of the text of a finding in the content, and in the payload.
pub(super) const FINDING: (&str, &str) = ("finding", "summary");

pub(super) fn read(bytes: &[u8], subject: &Subject) -> Result<Envelope, Fault> {
    let addressing = Addressing::by(subject)?;
    let mut fields = Fields::parse(bytes, "")?;
    let mut envelope = addressing.envelope(subject, bytes);
    if addressing.kind == MessageType::Challenge
        && fields.has("challenger")
        && !fields.has("content")
    {
        envelope.metadata.confidence = content::stated_confidence(&fields);
        envelope.payload = fields.into_raw()?;
        return Ok(envelope);
    }
    let mut content = content::read(
        fields.take_raw("content").as_deref(),
        &addressing.kind,
        "/content",
    )?;
    let overflow = OverflowFields::take(&mut content)?;
    // Metadata that are carried say all that there is to say.
    let says_all = overflow.metadata.is_some();
    overflow.apply(&addressing, "/content/concord", &mut envelope)?;
    content::take_confidence(
        &mut content,
        &addressing.kind,
        &mut envelope.metadata.confidence,
    )?;
    if !says_all && envelope.metadata.confidence.is_none() {
        envelope.metadata.confidence = content::stated_confidence(&content);
    }
    if is_finding(&addressing.kind) {
        content.rename(FINDING.0, FINDING.1)?;
    }
    envelope.payload = unnamed_action::payload(content, &mut envelope)?;
    finish(fields, &addressing, envelope)
}

pub(super) fn write(envelope: &Envelope) -> Result<Fields, Fault> {
    let kind = &envelope.message_type;
    let mut content = unnamed_action::content(content::fields(&envelope.payload)?, envelope);
    if is_finding(kind) {
        content.check_free(FINDING.0)?;
        content.rename(FINDING.1, FINDING.0)?;
    }
    let mut metadata = envelope.metadata.clone();
    content::put_confidence(&mut content, kind, &mut metadata.confidence)?;
    // A confidence that stays in the content would be read as that of the message.
    let is_ambiguous = !content::moves_confidence(kind) && content.has("confidence");
    let metadata = (is_ambiguous || metadata != Metadata::default()).then_some(metadata);
    OverflowFields {
        timestamp: None,
        priority: None,
        requires_response: None,
        metadata,
        ..OverflowFields::of(envelope)
    }
    .put(&mut content)?;
    let to = match &envelope.to_agent {
        Recipient::All => "all",
        to => to.as_str(),
    };
    let mut fields = Fields::at("");
    fields.put("from_agent", &envelope.from_agent)?;
    fields.put("to_agent", &to)?;
    fields.put("message_type", kind)?;
    fields.put("priority", &envelope.priority)?;
    fields.put_raw("content", content.into_raw()?)?;
    if let Some(at) = known_time(envelope.timestamp) {
        fields.put("timestamp", &time_text(at))?;
    }
    fields.put("requires_response", &envelope.requires_response)?;
    fields.put_all(&envelope.extensions)?;
    Ok(fields)
}

fn is_finding(kind: &MessageType) -> bool {
    matches!(
        kind,
        MessageType::Finding | MessageType::FindingWithPrecedent
    )
}
