//! Translation between `content`, which may be a text, and the payload, which is an object.

use serde_json::value::{RawValue, to_raw_value};

use super::fields::{Fields, unwritable};
use crate::fault::Fault;
use crate::{Envelope, MessageType};

/// The field of a payload of this type that holds free text.
fn text_field_of(kind: &MessageType) -> &'static str {
    match kind {
        MessageType::Finding | MessageType::FindingWithPrecedent => "summary",
        MessageType::Agreement | MessageType::Disagreement | MessageType::Revision => "reasoning",
        MessageType::Clarification => "text",
        MessageType::Evidence => "statement",
        MessageType::Acknowledgement => "note",
        _ => "content",
    }
}

/// Whether the confidence in a content of this type means the same as the confidence in the metadata, and stands in one of the two alone.
pub(super) fn moves_confidence(kind: &MessageType) -> bool {
    matches!(
        kind,
        MessageType::Finding | MessageType::FindingWithPrecedent | MessageType::Alert
    )
}

/// The fields of the payload for a content of any JSON: an object as it is, a text under the name of the free text.
pub(super) fn read(
    content: Option<&RawValue>,
    kind: &MessageType,
    pointer: &str,
) -> Result<Fields, Fault> {
    let Some(content) = content else {
        return Err(Fault::invalid(
            pointer,
            "There is no content.",
            "Say something; an empty object will do.",
        ));
    };
    if content.get().starts_with('{') {
        return Fields::parse(content.get().as_bytes(), pointer);
    }
    let mut fields = Fields::at(pointer);
    let name = if content.get().starts_with('"') {
        text_field_of(kind)
    } else {
        "content"
    };
    fields.put_raw(name, content.to_owned())?;
    Ok(fields)
}

/// The same for a content that is serialised JSON or free text.
pub(super) fn read_text(
    content: Option<&RawValue>,
    kind: &MessageType,
    pointer: &str,
) -> Result<Fields, Fault> {
    if content.is_some_and(|content| !content.get().starts_with(['"', '{'])) {
        return Err(Fault::invalid(
            pointer,
            "The content is no text.",
            "Send words, or JSON serialised to a text.",
        ));
    }
    let text = content.and_then(|content| serde_json::from_str::<String>(content.get()).ok());
    match text.filter(|text| is_object(text)) {
        Some(text) => Fields::parse(text.trim().as_bytes(), pointer),
        None => read(content, kind, pointer),
    }
}

/// The fields of a payload.
pub(super) fn fields(payload: &RawValue) -> Result<Fields, Fault> {
    Fields::parse(payload.get().as_bytes(), "/payload")
}

/// Writes a content of any JSON.
pub(super) fn write(fields: Fields, kind: &MessageType) -> Result<Box<RawValue>, Fault> {
    let value =
        only_field(&fields, text_field_of(kind)).filter(|value| value.get().starts_with('"'));
    let value = value.or_else(|| {
        only_field(&fields, "content").filter(|value| !value.get().starts_with(['"', '{']))
    });
    match value {
        Some(value) => Ok(value.to_owned()),
        None => fields.into_raw(),
    }
}

/// Writes a content that is a text: free text as it is, and everything else as serialised JSON.
pub(super) fn write_text(
    fields: Fields,
    kind: &MessageType,
    pointer: &str,
) -> Result<Box<RawValue>, Fault> {
    let words =
        only_field(&fields, text_field_of(kind)).filter(|value| value.get().starts_with('"'));
    if let Some(words) = words {
        let text: String =
            serde_json::from_str(words.get()).map_err(|error| unwritable(pointer, &error))?;
        if !is_object(&text) {
            return Ok(words.to_owned());
        }
    }
    serialised(fields, pointer)
}

/// Writes a content that is always serialised JSON.
pub(super) fn serialised(fields: Fields, pointer: &str) -> Result<Box<RawValue>, Fault> {
    let json = fields.into_raw()?;
    to_raw_value(json.get()).map_err(|error| unwritable(pointer, &error))
}

/// A message as one of another type, which its sender has no name for: what a response has as its result is the payload, and words stand
/// where that type has them.
pub fn retyped(message: Envelope, message_type: MessageType) -> Envelope {
    let (words, own) = (
        text_field_of(&message.message_type),
        text_field_of(&message_type),
    );
    let message = Envelope {
        message_type,
        ..message.without_response_form()
    };
    let renamed = fields(&message.payload).ok().and_then(|mut fields| {
        only_field(&fields, words).filter(|value| value.get().starts_with('"'))?;
        fields.rename(words, own).ok()?;
        fields.into_raw().ok()
    });
    match renamed {
        Some(payload) => Envelope { payload, ..message },
        None => message,
    }
}

/// Moves the confidence of a finding or alert from its content to the metadata.
pub(super) fn take_confidence(
    fields: &mut Fields,
    kind: &MessageType,
    confidence: &mut Option<f64>,
) -> Result<(), Fault> {
    if !moves_confidence(kind) {
        return Ok(());
    }
    if let Some(value) = fields.take::<f64>("confidence")? {
        let pointer = fields.pointer("confidence");
        crate::envelope::check_confidence(&pointer, value)?;
        if confidence
            .replace(value)
            .is_some_and(|other| other.to_bits() != value.to_bits())
        {
            return Err(Fault::invalid(
                pointer,
                "Two confidences are stated.",
                "State one.",
            ));
        }
    }
    Ok(())
}

/// Moves the confidence of a finding or alert from the metadata to its content.
pub(super) fn put_confidence(
    fields: &mut Fields,
    kind: &MessageType,
    confidence: &mut Option<f64>,
) -> Result<(), Fault> {
    if !moves_confidence(kind) {
        return Ok(());
    }
    // The coordinator states that of an alert in the payload, where it means the same.
    if *kind == MessageType::Alert
        && let Some(stated) = stated_confidence(fields)
        && confidence.is_none_or(|own| own.to_bits() == stated.to_bits())
    {
        *confidence = None;
        return Ok(());
    }
    // Also without one in the metadata: one in the payload would be read as that.
    fields.check_free("confidence")?;
    confidence
        .take()
        .map_or(Ok(()), |confidence| fields.put("confidence", &confidence))
}

/// The confidence that the content of any other type states, where it is a number from 0 to 1. It stays in the content, where it may mean
/// something else as well.
pub(super) fn stated_confidence(fields: &Fields) -> Option<f64> {
    let stated = serde_json::from_str(fields.get("confidence")?.get()).ok();
    stated.filter(|stated| (0.0..=1.0).contains(stated))
}

fn only_field<'a>(fields: &'a Fields, name: &str) -> Option<&'a RawValue> {
    fields
        .names()
        .eq([name])
        .then(|| fields.get(name))
        .flatten()
}

/// Whether a text is a JSON object; looked into without recursion.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}
