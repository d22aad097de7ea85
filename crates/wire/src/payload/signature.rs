//! A person's signature of what they rule or review.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::challenge::LADDER_TEXT_BYTES_MAX;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, MessageId};

/// Hexadecimal digits of a public key: 32 bytes.
const KEY_DIGITS: usize = 64;
/// Hexadecimal digits of a signature: 64 bytes.
const VALUE_DIGITS: usize = 128;
/// Digits of a key by which people tell it from others.
const FINGERPRINT_DIGITS: usize = 16;

/// An ed25519 signature of what a person rules or reviews, and the key that it was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The public key, 64 hexadecimal digits, as it is registered with the person.
    pub key: String,
    /// The signature, 128 hexadecimal digits.
    pub value: String,
}

impl Signature {
    /// The first digits of the key, by which people tell it from others.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }
}

/// The first digits of a public key, in lower case.
pub fn fingerprint(key: &str) -> String {
    key.chars()
        .take(FINGERPRINT_DIGITS)
        .map(|digit| digit.to_ascii_lowercase())
        .collect()
}

/// Checks the form of a signature where there is one, and that the value it covers is small enough to be kept with it.
pub(super) fn check(signature: Option<&Signature>, value: Option<&Value>) -> Result<(), Fault> {
    let Some(signature) = signature else {
        return Ok(());
    };
    let parts = [
        ("key", &signature.key, KEY_DIGITS),
        ("value", &signature.value, VALUE_DIGITS),
    ];
    for (field, text, digits) in parts {
        if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Fault::invalid(
                format!("/payload/signature/{field}"),
                format!("It is not {digits} hexadecimal digits."),
                "Sign with ed25519; `concord rule --key FILE` and `concord gate review --key FILE` do.",
            ));
        }
    }
    let bytes = value.map_or(0, |value| value.to_string().len());
    if bytes > LADDER_TEXT_BYTES_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/value",
            format!("The value has {bytes} bytes; at most {LADDER_TEXT_BYTES_MAX} can be signed."),
            "Give the value more briefly, or do not sign.",
        ));
    }
    Ok(())
}

/// The text that is signed: one line of JSON without spaces, the fields of each object in the order of their names, characters
/// beyond ASCII as they are. The payload is what is sent, without its signature. The message id keeps it from being sent again
/// in another message.
pub(super) fn text(
    kind: &str,
    payload: &impl Serialize,
    by: &AgentId,
    case_id: &CaseId,
    message_id: &MessageId,
) -> String {
    // A payload has no map with other than text keys, so writing it cannot fail.
    let mut payload = serde_json::to_value(payload).unwrap_or_default();
    if let Some(fields) = payload.as_object_mut() {
        fields.remove("signature");
    }
    let mut text = String::new();
    write(
        &mut text,
        &json!({
            "concord": kind, "by": by, "case_id": case_id, "message_id": message_id, "payload": payload,
        }),
    );
    text
}

/// Writes the fields of objects in the order of their names, whatever order a map keeps.
fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            out.push('{');
            for (place, (name, value)) in sorted.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Review, Ruling};

    fn ruling(more: Value) -> Ruling {
        let mut whole = json!({
            "debate_id": "d-1", "digest": "abc", "position_id": "p1", "rationale": "Der \"Anhang\" fügt es.\n",
        });
        let fields = whole.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn ids() -> (AgentId, CaseId, MessageId) {
        (
            AgentId::new("eve").unwrap(),
            CaseId::new("c-1").unwrap(),
            MessageId::new("m-1").unwrap(),
        )
    }

    #[test]
    fn the_text_says_everything_but_the_signature_in_one_order() {
        let (by, case, message) = ids();
        let signature = json!({ "key": "0a".repeat(32), "value": "0b".repeat(64) });
        let plain = ruling(json!({})).signed_text(&by, &case, &message);
        let signed = ruling(json!({ "signature": signature }));
        assert_eq!(signed.signed_text(&by, &case, &message), plain);
        assert_eq!(
            plain,
            "{\"by\":\"eve\",\"case_id\":\"c-1\",\"concord\":\"ruling\",\"message_id\":\"m-1\",\"payload\":{\"debate_id\":\"d-1\",\
             \"digest\":\"abc\",\"position_id\":\"p1\",\"rationale\":\"Der \\\"Anhang\\\" fügt es.\\n\"}}"
        );
        let with_value = ruling(json!({ "value": { "b": [1, 2.5], "a": null } }));
        let text = with_value.signed_text(&by, &case, &message);
        assert!(
            text.ends_with(r#""value":{"a":null,"b":[1,2.5]}}}"#),
            "{text}"
        );
    }

    #[test]
    fn another_message_case_person_or_word_is_another_text() {
        let (by, case, message) = ids();
        let text = |by: &str, case: &str, message: &str, more: Value| {
            ruling(more).signed_text(
                &AgentId::new(by).unwrap(),
                &CaseId::new(case).unwrap(),
                &MessageId::new(message).unwrap(),
            )
        };
        let plain = ruling(json!({})).signed_text(&by, &case, &message);
        for other in [
            text("eva", "c-1", "m-1", json!({})),
            text("eve", "c-2", "m-1", json!({})),
            text("eve", "c-1", "m-2", json!({})),
            text("eve", "c-1", "m-1", json!({ "debate_id": "d-2" })),
            text("eve", "c-1", "m-1", json!({ "position_id": "p2" })),
            text("eve", "c-1", "m-1", json!({ "digest": "abd" })),
            text("eve", "c-1", "m-1", json!({ "rationale": "So." })),
        ] {
            assert_ne!(other, plain);
        }
    }

    #[test]
    fn a_signature_of_another_form_is_refused_at_its_place() {
        let (key, value) = ("0a".repeat(32), "0B".repeat(64));
        for (key, value, pointer) in [
            (&key, &value, None),
            (&value, &value, Some("/payload/signature/key")),
            (&key, &key, Some("/payload/signature/value")),
            (&key, &"zz".repeat(64), Some("/payload/signature/value")),
        ] {
            let signature = json!({ "key": key, "value": value });
            let refused = ruling(json!({ "signature": signature })).check().err();
            assert_eq!(refused.map(|fault| fault.pointer).as_deref(), pointer);
            let review = json!({ "gate": "g", "action": "pass", "signature": signature });
            let review: Review = serde_json::from_value(review).unwrap();
            assert_eq!(review.check().is_err(), pointer.is_some());
        }
        let long = json!({
            "position_id": null, "position": "Own.", "value": "x".repeat(5_000),
            "signature": { "key": key, "value": value },
        });
        assert_eq!(ruling(long).check().unwrap_err().pointer, "/payload/value");
    }

    #[test]
    fn a_key_is_known_by_its_first_digits() {
        let signature = Signature {
            key: format!("3F2A{}", "0".repeat(60)),
            value: String::new(),
        };
        assert_eq!(signature.fingerprint(), "3f2a000000000000");
    }
}
