//! Identifiers: every one is a subject token, so that none can smuggle a dot, a space or a wildcard into a subject.
//!
//! Every message has several, and they are copied many times, so short ones are stored in place and long ones are shared.

mod message;
mod plain_name;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use smol_str::{SmolStr, ToSmolStr, format_smolstr};

pub use message::without_sequence;
pub(crate) use plain_name::PLAIN_NAME_PATTERN;
pub use plain_name::{GateName, PlainNameError, PolicyName};

/// Longest token of a subject, in bytes.
pub const TOKEN_BYTES_MAX: usize = 64;
/// Longest message id, in bytes. Longer than a token, because an effect's id is built from its aggregate's.
pub const MESSAGE_ID_BYTES_MAX: usize = 128;

/// Why a string is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty.
    #[error("is empty; expected 1 to {max} characters of A-Z a-z 0-9 _ -")]
    Empty {
        /// How many bytes are allowed.
        max: usize,
    },
    /// Too many characters.
    #[error("has {length} characters; at most {max} are allowed")]
    TooLong {
        /// How many bytes there are.
        length: usize,
        /// How many bytes are allowed.
        max: usize,
    },
    /// A character that may not be part of a subject token.
    #[error("contains {character:?}; only A-Z a-z 0-9 _ - are allowed")]
    Character {
        /// The first offending character.
        character: char,
    },
    /// A leading underscore is kept for Concord itself.
    #[error("begins with an underscore, which is reserved")]
    Reserved,
}

fn check(text: &str, max: usize, allow_reserved: bool) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::Empty { max });
    }
    // By bytes, which is faster: every allowed character is one byte, and each message has several identifiers.
    let is_wrong = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if let Some(at) = text.bytes().position(is_wrong) {
        let character = text
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .unwrap_or(char::REPLACEMENT_CHARACTER);
        return Err(Error::Character { character });
    }
    if text.len() > max {
        return Err(Error::TooLong {
            length: text.len(),
            max,
        });
    }
    if !allow_reserved && text.starts_with('_') {
        return Err(Error::Reserved);
    }
    Ok(())
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks `text` against the identifier grammar.
            pub fn new(text: impl Into<SmolStr>) -> Result<Self, Error> {
                let text = text.into();
                check(&text, $max, false)?;
                Ok(Self(text))
            }

            /// For names fixed in this crate, or built here from checked parts; tests hold that they are valid.
            #[allow(dead_code)]
            pub(crate) fn trusted(text: impl Into<SmolStr>) -> Self {
                Self(text.into())
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The identifier as a subject token, where it is short enough to be one.
            pub fn token(&self) -> Token {
                Token(self.0.clone())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = SmolStr::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": format!("^[A-Za-z0-9-][A-Za-z0-9_-]{{0,{}}}$", $max - 1),
                })
            }
        }
    };
}

identifier!(
    /// One token of a subject: `[A-Za-z0-9_-]{1,64}` without a leading underscore.
    Token, TOKEN_BYTES_MAX
);
identifier!(
    /// A participant that speaks: an AI agent, a tool, a person or one of the services.
    AgentId, TOKEN_BYTES_MAX
);
identifier!(
    /// One matter under deliberation.
    CaseId, TOKEN_BYTES_MAX
);
identifier!(
    /// The life of one conflict until it is resolved.
    DebateId, TOKEN_BYTES_MAX
);
identifier!(
    /// A message's identity, unique in an installation; also the `Nats-Msg-Id` of what services say.
    MessageId, MESSAGE_ID_BYTES_MAX
);

impl AgentId {
    /// A name fixed in the program text; see [`Token::fixed`].
    pub fn fixed(name: &'static str) -> Self {
        Self(Token::fixed(name).0)
    }
}

impl Token {
    /// A name fixed in the program text. Anything that is not a token becomes one by replacing what is not allowed,
    /// so this cannot fail; tests hold that the names in use are unchanged by it.
    pub fn fixed(name: &'static str) -> Self {
        Self(
            name.chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                        c
                    } else {
                        '-'
                    }
                })
                .collect(),
        )
    }
}

impl Token {
    /// A fixed name with a number, `name-1`.
    pub fn numbered(name: &'static str, number: u32) -> Self {
        Self(format_smolstr!("{}-{number}", Self::fixed(name)))
    }

    /// A token derived from any text: the same for the same text.
    pub fn derived(text: &str) -> Self {
        Self(uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).to_smolstr())
    }
}

impl CaseId {
    /// A case id derived from any text: the same for the same text.
    pub fn derived(text: &str) -> Self {
        Self(Token::derived(text).0)
    }
}

impl DebateId {
    /// The id of the debate about one conflict of a case: the same from every process.
    pub fn of_conflict(case: &CaseId, kind: &str, subject: &str) -> Self {
        let name = format!("{case}/{kind}/{subject}");
        let hex = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes())
            .simple()
            .to_string();
        Self(format_smolstr!("d-{}", hex.get(..24).unwrap_or(&hex)))
    }
}

/// To whom a message is addressed: the third token after `msg`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    /// One agent or service.
    Agent(AgentId),
    /// Everyone in the case (`_all`).
    All,
    /// Whoever can help (`_any`).
    Any,
}

impl Recipient {
    /// Parses a recipient token.
    pub fn new(text: &str) -> Result<Self, Error> {
        match text {
            "_all" => Ok(Self::All),
            "_any" => Ok(Self::Any),
            other => AgentId::new(other).map(Self::Agent),
        }
    }

    /// The recipient as a subject token.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.as_str(),
            Self::All => "_all",
            Self::Any => "_any",
        }
    }
}

impl From<AgentId> for Recipient {
    fn from(agent: AgentId) -> Self {
        Self::Agent(agent)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Recipient {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Recipient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = SmolStr::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Recipient {
    fn schema_name() -> Cow<'static, str> {
        "Recipient".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "An agent or service, `_all` (everyone in the case) or `_any` (whoever can help).",
            "pattern": "^(_all|_any|[A-Za-z0-9-][A-Za-z0-9_-]{0,63})$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_refuse_whatever_could_change_a_subject() {
        for (text, expected) in [
            ("", Error::Empty { max: 64 }),
            ("a.b", Error::Character { character: '.' }),
            ("a b", Error::Character { character: ' ' }),
            ("*", Error::Character { character: '*' }),
            (">", Error::Character { character: '>' }),
            ("é", Error::Character { character: 'é' }),
            ("ab日", Error::Character { character: '日' }),
            ("_all", Error::Reserved),
            (
                &"x".repeat(65),
                Error::TooLong {
                    length: 65,
                    max: 64,
                },
            ),
        ] {
            assert_eq!(CaseId::new(text), Err(expected), "{text:?}");
        }
        assert!(CaseId::new("c-42_A").is_ok());
        assert!(MessageId::new("x".repeat(128)).is_ok());
    }

    #[test]
    fn recipients_know_the_two_reserved_words_and_no_other() {
        assert_eq!(Recipient::new("_all"), Ok(Recipient::All));
        assert_eq!(Recipient::new("_any"), Ok(Recipient::Any));
        assert_eq!(Recipient::new("_some"), Err(Error::Reserved));
    }
}
