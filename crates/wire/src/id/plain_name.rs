//! Names that a person types and a command repeats.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use smol_str::SmolStr;

/// Longest name, in characters, each of which is one byte.
const CHARACTERS_MAX: usize = 64;

/// The text is no name of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not the name of a {kind}: 1 to 64 characters of a-z 0-9 space _ . -, of which the first is a letter or a digit, for example {example:?}"
)]
pub struct PlainNameError {
    /// The text, or its beginning.
    found: String,
    kind: &'static str,
    example: &'static str,
}

fn is_plain_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let may_follow = |byte: u8| is_plain(byte) || matches!(byte, b' ' | b'_' | b'.' | b'-');
    let begins = text.bytes().next().is_some_and(is_plain);
    begins && text.len() <= CHARACTERS_MAX && text.bytes().all(may_follow)
}

macro_rules! plain_name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks a text against the grammar.
            pub fn parse(text: &str) -> Result<Self, PlainNameError> {
                if is_plain_name(text) {
                    return Ok(Self(text.into()));
                }
                let found = text.chars().take(CHARACTERS_MAX).collect();
                Err(PlainNameError { found, kind: $kind, example: $example })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = PlainNameError;
            fn from_str(text: &str) -> Result<Self, PlainNameError> {
                Self::parse(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = SmolStr::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": PLAIN_NAME_PATTERN })
            }
        }
    };
}

/// The grammar of these names.
pub(crate) const PLAIN_NAME_PATTERN: &str = "^[a-z0-9][a-z0-9 _.-]{0,63}$";

plain_name!(
    /// The name of a gate, as a case is opened with it: `[a-z0-9][a-z0-9 _.-]{0,63}`. It can stand on a command line in quotes, in
    /// a mail and on a terminal. Gates of cases that an earlier version opened may have any name, so events keep a text.
    GateName, "gate", "valuation review"
);
plain_name!(
    /// The name of a policy, with the grammar of [`GateName`].
    PolicyName, "policy", "house rules"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_typed_and_nothing_else_can_be_in_it() {
        let longest = "g".repeat(CHARACTERS_MAX);
        for good in ["valuation", "valuation review", "7", "a.b-c_d", &longest] {
            assert_eq!(GateName::parse(good).unwrap().as_str(), good);
            assert_eq!(PolicyName::parse(good).unwrap().as_str(), good);
        }
        let longer = "g".repeat(CHARACTERS_MAX + 1);
        let bad = [
            "",
            " a",
            "-a",
            ".a",
            "Valuation",
            "v$(touch x)",
            "v`id`",
            "v'",
            "v\"",
            "v;",
            "v\n",
            "v\u{1b}[2J",
            "v\u{202e}",
            "v\u{200b}",
            "prüfung",
            &longer,
        ];
        for text in bad {
            assert!(GateName::parse(text).is_err(), "{text:?}");
            assert!(PolicyName::parse(text).is_err(), "{text:?}");
        }
        let fault = GateName::parse("v$(touch x)").unwrap_err().to_string();
        assert!(
            fault.contains("name of a gate") && fault.contains("valuation review"),
            "{fault}"
        );
        let fault = PolicyName::parse("A").unwrap_err().to_string();
        assert!(
            fault.contains("name of a policy") && fault.contains("house rules"),
            "{fault}"
        );
    }
}
