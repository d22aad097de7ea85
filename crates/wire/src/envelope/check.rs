//! Checks of an envelope, and how its JSON is read.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::ENVELOPE_BYTES_MAX;
use super::in_words::{InWords, in_words};
use super::no_lists::NoLists;
use super::syntax;
use crate::fault::Fault;
use crate::id::AgentId;

/// Refuses a message that is larger than an envelope may be.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), Fault> {
    if bytes.len() <= ENVELOPE_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        crate::ErrorCode::CapacityExceeded,
        "",
        format!(
            "The message has {} bytes; at most {ENVELOPE_BYTES_MAX} are accepted.",
            bytes.len()
        ),
        "Send less, or put the payload into the object store and send `payload_reference`; see docs/adr/0029.",
    ))
}

/// The fault of a field that differs from the subject.
pub(crate) fn differs(pointer: &str, body: &str, token: &str) -> Fault {
    Fault::invalid(
        pointer,
        format!(
            "The envelope says {:?}, the subject says {token:?}.",
            crate::payload::shortened(body)
        ),
        "Make the field equal to the subject's token; the subject is what the broker has checked.",
    )
}

/// The fault of a message whose sender writes under the id of another.
pub(crate) fn impostor(pointer: &str, body: &str, from: &AgentId) -> Fault {
    Fault {
        code: crate::ErrorCode::Unauthorized,
        ..differs(pointer, body, from.as_str())
    }
}

pub(crate) fn not_an_object(pointer: &str) -> Fault {
    Fault::invalid(
        pointer,
        "It is not a JSON object.",
        "Send an object, as the JSON Schema of this message type says.",
    )
}

/// Checks that a confidence is a number from 0 to 1.
pub fn check_confidence(pointer: &str, confidence: f64) -> Result<(), Fault> {
    if (0.0..=1.0).contains(&confidence) {
        return Ok(());
    }
    Err(Fault::invalid(
        pointer,
        format!("Confidence is {confidence}."),
        "Give a number from 0 to 1, for example 0.85.",
    ))
}

/// Parses an object, whose place in the message is `base`. A list is none: it would be read as the fields in the order in which they
/// are written in the code, past whoever looks at them by name.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8], base: &str) -> Result<T, Fault> {
    match bytes.trim_ascii_start().starts_with(b"[") {
        true => Err(not_an_object(base)),
        false => value_from_json(bytes, base),
    }
}

/// Parses JSON of any form; on every level a list is read only where one is meant. Only if that fails, parses it again to find the place of
/// the fault.
pub(crate) fn value_from_json<T: DeserializeOwned>(bytes: &[u8], base: &str) -> Result<T, Fault> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    if let Ok(value) = T::deserialize(NoLists::new(&mut deserializer))
        && deserializer.end().is_ok()
    {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let no_lists = NoLists::new(&mut deserializer);
    let (pointer, error) = match serde_path_to_error::deserialize::<_, T>(no_lists) {
        Ok(value) => match deserializer.end() {
            Ok(()) => return Ok(value),
            Err(error) => (base.to_owned(), error),
        },
        Err(error) => (
            format!("{base}{}", json_pointer(error.path())),
            error.into_inner(),
        ),
    };
    if error.is_syntax() || error.is_eof() {
        return Err(no_json(bytes, pointer, &error));
    }
    let InWords {
        message,
        advice,
        missing,
    } = in_words(&error);
    // Whoever has left a field out is told where it belongs.
    let missing = missing.map_or_else(String::new, |field| key(&field));
    Err(Fault::invalid(
        format!("{pointer}{missing}"),
        message,
        advice,
    ))
}

/// The fault of what the parser cannot read.
fn no_json(bytes: &[u8], pointer: String, error: &serde_json::Error) -> Fault {
    let is_value = error.to_string().starts_with("expected value");
    // So serde calls a value of any other type where one of a few words must stand.
    if is_value && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
        return Fault::invalid(
            pointer,
            "It is not what is expected: a text.",
            "Write one of the words that the JSON Schema of what you send has there.",
        );
    }
    let (message, advice) = syntax::in_words(bytes, error);
    Fault::invalid(pointer, message, advice)
}

fn json_pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key: name } => pointer.push_str(&key(name)),
            // An object with one field, which names which of several forms it has.
            Segment::Enum { variant } => pointer.push_str(&key(variant)),
            Segment::Unknown => {}
        }
    }
    pointer
}

/// A step of a JSON pointer: the field of this name.
fn key(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
