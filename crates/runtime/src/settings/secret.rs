//! Settings that are never shown.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What stands in place of a secret, wherever settings are printed.
pub(super) const HIDDEN: &str = "(hidden)";

/// A text that no output of the program contains: not `--print-config`, no log line, no error.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one who asks for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)
    }
}

/// The usual errors repeat what they were given; these do not.
struct Text;

/// The environment's `0123` has become a number on its way here, and its zero is lost.
const NO_TEXT: &str =
    "it is no text; what looks like a number or a truth value must be quoted, or stand in a file";

impl de::Visitor<'_> for Text {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::new(text))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Secret, E> {
        Err(E::custom(NO_TEXT))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
        Err(E::custom(NO_TEXT))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
        Err(E::custom(NO_TEXT))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
        Err(E::custom(NO_TEXT))
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_and_not_shown() {
        let secret: Secret = serde_json::from_str("\"s3cret\"").unwrap();
        assert_eq!(secret.reveal(), "s3cret");
        assert_eq!(
            format!("{secret:?} {}", serde_json::to_string(&secret).unwrap()),
            "(hidden) \"(hidden)\""
        );
    }

    #[test]
    fn what_is_no_text_is_refused_without_repeating_it() {
        for value in ["123456", "-123456", "true", "123456.5"] {
            let error = serde_json::from_str::<Secret>(value)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("quoted") && !error.contains(value),
                "{error}"
            );
        }
    }
}
