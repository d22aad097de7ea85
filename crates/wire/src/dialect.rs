//! The wire formats that agents may use besides the canonical envelope: the five of the specification's documents.
//!
//! [`read`] and [`write`] translate and do nothing else: no clock, no state. What a dialect has no field for is written into
//! its most general field (`metadata`, or the content) under [`OVERFLOW_FIELD`]; what fits nowhere is a [`Fault`] that names it.
//! `docs/adr/0025` has the rules.

mod analyst;
mod answer;
mod collaboration;
mod content;
mod detect;
mod exchange;
mod fields;
mod free_metadata;
mod overflow_fields;
mod panel;
mod session;
mod unnamed_action;
mod written;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::{ENVELOPE_BYTES_MAX, REFERENCE_BYTES_MAX, check_size};
use crate::fault::Fault;
use crate::subject::Subject;
use crate::{Envelope, MessageId};

pub use answer::{AnswerContext, read_answer};
pub use content::retyped;
pub use overflow_fields::OVERFLOW_FIELD;
pub use unnamed_action::DEFAULT_ACTION;
pub use written::{written_advice, written_pointer};

/// How an agent writes its messages.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The canonical envelope.
    #[default]
    Concord,
    /// A panel of reviewers: `sender`, `recipients`, `messageType`, `content` as serialised JSON (specification 1).
    Panel,
    /// Coordination strategies: `sender_id`, `receiver_id` or none for everyone, upper-case types (specification 2).
    Collaboration,
    /// Analysts and their challenges: `from_agent`, `content` without an id (specification 3).
    Analyst,
    /// A session of workers: `source_agent_id`, `target_agent_id`, `interaction_type` (specification 4).
    Session,
    /// The general exchange: the canonical envelope without what Concord added (specification 5).
    Exchange,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Concord,
        Self::Panel,
        Self::Collaboration,
        Self::Analyst,
        Self::Session,
        Self::Exchange,
    ];

    /// The dialect as it is written in a card and in the `Concord-Dialect` header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Concord => "concord",
            Self::Panel => "panel",
            Self::Collaboration => "collaboration",
            Self::Analyst => "analyst",
            Self::Session => "session",
            Self::Exchange => "exchange",
        }
    }

    /// The dialect that the `Concord-Dialect` header of a message names; none if there is no such header.
    pub fn declared(header: Option<&str>) -> Result<Option<Self>, Fault> {
        let Some(name) = header else { return Ok(None) };
        Self::parse(name).map(Some).ok_or_else(|| {
            Fault::invalid(
                "",
                format!(
                    "The header {} names no dialect: {:?}.",
                    crate::header::DIALECT,
                    crate::payload::shortened(name)
                ),
                format!(
                    "Name one of {}, or leave the header out.",
                    Self::ALL.map(Self::as_str).join(", ")
                ),
            )
        })
    }

    /// The dialect of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == text)
    }
}

/// Reads a message in the dialect that its sender has declared, or else in the dialect that its fields are those of.
///
/// What the dialect leaves out follows from the subject. A missing id follows from subject and bytes, so that the same message
/// has the same id in every process. A missing time is the epoch. Pointers of faults point into the message as it was written.
pub fn read(
    bytes: &[u8],
    declared: Option<Dialect>,
    subject: &Subject,
) -> Result<(Envelope, Dialect), Fault> {
    check_size(bytes)?;
    let dialect = match declared {
        Some(dialect) => dialect,
        None => match Envelope::decode(bytes, subject) {
            // Only messages of the exchange dialect have overflow fields in their metadata.
            Ok(envelope) if envelope.metadata.extensions.get(OVERFLOW_FIELD).is_some() => {
                Dialect::Exchange
            }
            Ok(envelope) => return Ok((envelope, Dialect::Concord)),
            // A message with the fields of no other dialect is refused as a canonical one.
            Err(fault) => match detect::dialect(bytes, subject) {
                Dialect::Concord => return Err(fault),
                dialect => dialect,
            },
        },
    };
    let envelope = match dialect {
        Dialect::Concord => Envelope::decode(bytes, subject),
        Dialect::Panel => panel::read(bytes, subject),
        Dialect::Collaboration => collaboration::read(bytes, subject),
        Dialect::Analyst => analyst::read(bytes, subject),
        Dialect::Session => session::read(bytes, subject),
        Dialect::Exchange => exchange::read(bytes, subject),
    }?;
    Ok((envelope, dialect))
}

/// Writes a message in a dialect. What the dialect cannot express is a fault with a pointer into the canonical envelope.
pub fn write(envelope: &Envelope, dialect: Dialect) -> Result<Vec<u8>, Fault> {
    let fields = match dialect {
        Dialect::Concord => {
            return serde_json::to_vec(envelope).map_err(|error| fields::unwritable("", &error));
        }
        Dialect::Panel => panel::write(envelope),
        Dialect::Collaboration => collaboration::write(envelope),
        Dialect::Analyst => analyst::write(envelope),
        Dialect::Session => session::write(envelope),
        Dialect::Exchange => exchange::write(envelope),
    }?;
    let bytes = fields.into_bytes()?;
    check_size(&bytes)?;
    Ok(bytes)
}

/// The dialect that the fields of a message are those of, also if it cannot be read; the canonical one if there is none.
pub fn of_shape(bytes: &[u8], subject: &Subject) -> Dialect {
    if bytes.len() > ENVELOPE_BYTES_MAX {
        Dialect::Concord
    } else {
        detect::dialect(bytes, subject)
    }
}

/// The id in a message of any dialect, also if the rest of the message is wrong.
pub fn id_of(bytes: &[u8]) -> Option<MessageId> {
    #[derive(Deserialize)]
    struct Ids {
        message_id: Option<String>,
        id: Option<String>,
    }
    let Ids { message_id, id } = serde_json::from_slice(bytes).ok()?;
    MessageId::new(message_id.or(id)?).ok()
}

/// The `correlation_id` in a message of any dialect that has one, also if the rest of the message is wrong.
pub fn correlation_of(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Ids {
        correlation_id: Option<String>,
    }
    let Ids { correlation_id } = serde_json::from_slice(bytes).ok()?;
    correlation_id.filter(|id| id.len() <= REFERENCE_BYTES_MAX)
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
