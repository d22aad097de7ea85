//! Answers that do not come through the broker: no subject says who answers whom, nor of what type the answer is.

use serde_json::value::RawValue;

use super::fields::Fields;
use super::overflow_fields::OVERFLOW_FIELD;
use super::{Dialect, detect};
use crate::envelope::{Metadata, value_from_json};
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, Recipient};
use crate::subject::{Lane, Subject};
use crate::{Envelope, MessageType, Timestamp, Token};

/// Who answers whom, and how.
#[derive(Debug, Clone, Copy)]
pub struct AnswerContext<'a> {
    /// The agent that answers.
    pub from: &'a AgentId,
    /// The agent that asked.
    pub to: &'a AgentId,
    /// The case, if the question was asked in one.
    pub case: Option<&'a CaseId>,
    /// The dialect of the answering agent's card.
    pub dialect: Dialect,
}

impl AnswerContext<'_> {
    /// The subject on which the answer would have been published.
    fn subject(&self, kind: &MessageType) -> Subject {
        Subject::Message {
            lane: Lane::Normal,
            case: self.case.cloned(),
            from: self.from.clone(),
            to: Recipient::Agent(self.to.clone()),
            kind: kind.token(),
        }
    }
}

/// Reads an answer in the dialect that it declares, or else in the only dialect with such fields, or else in the dialect of the
/// agent's card. In the canonical form `message_type` and `payload` suffice. `{}` is no answer.
///
/// `type_of` names the type of an answer that does not name it (`RESPONSE`), from what it says. Of the returned envelope,
/// type, payload, metadata and extensions are those of the answer; id, time and thread may be missing.
pub fn read_answer(
    bytes: &[u8],
    declared: Option<Dialect>,
    context: &AnswerContext<'_>,
    type_of: impl FnOnce(&Envelope) -> Result<MessageType, Fault>,
) -> Result<Option<Envelope>, Fault> {
    let fields = Fields::parse(bytes, "")?;
    if fields.names().next().is_none() {
        return Ok(None);
    }
    let dialect = declared
        .or_else(|| dialect_of_shape(&fields, context.dialect))
        .unwrap_or(context.dialect);
    if !has_fields_of(&fields, dialect) {
        return Err(Fault::invalid(
            "",
            "The agent's answer is a message in none of the dialects.",
            format!(
                "Answer as the dialect {dialect} has it, with message_type and payload, or with {{}}."
            ),
        ));
    }
    if dialect == Dialect::Concord {
        return canonical(fields, context).map(Some);
    }
    let kind = kind(&fields, dialect)?;
    let bytes = with_recipient(fields, dialect, context)?.into_bytes()?;
    let read = |kind: &MessageType| super::read(&bytes, Some(dialect), &context.subject(kind));
    let kind = match kind {
        Some(kind) => kind,
        None => type_of(&read(&MessageType::Response)?.0)?,
    };
    Ok(Some(read(&kind)?.0))
}

/// The only dialect that has fields like those of the answer.
fn dialect_of_shape(fields: &Fields, dialect: Dialect) -> Option<Dialect> {
    let has = |name: &str| fields.has(name);
    if let Some(dialect) = detect::by_own_field(fields) {
        Some(dialect)
    } else if has("message_type") && has("payload") {
        // Both dialects have these names and most of these types. Overflow fields tell them apart, or else the card.
        let exchange = dialect == Dialect::Exchange || overflow_type(fields).is_some();
        Some(if exchange {
            Dialect::Exchange
        } else {
            Dialect::Concord
        })
    } else if is_review(fields) {
        Some(Dialect::Panel)
    } else {
        is_challenge(fields).then_some(Dialect::Analyst)
    }
}

/// Whether there is any of the fields that a message in the dialect has.
fn has_fields_of(fields: &Fields, dialect: Dialect) -> bool {
    let any = |names: &[&str]| names.iter().any(|name| fields.has(name));
    match dialect {
        Dialect::Concord | Dialect::Exchange => any(&["message_type", "payload"]),
        Dialect::Panel => any(&["messageType", "content"]) || is_review(fields),
        Dialect::Collaboration => any(&["message_type", "content"]),
        Dialect::Analyst => any(&["message_type", "content"]) || is_challenge(fields),
        Dialect::Session => any(&["interaction_type", "content"]),
    }
}

/// What the prompt of the peer review asks a model for, without an envelope.
fn is_review(fields: &Fields) -> bool {
    let envelope = ["id", "sender", "messageType", "content", "payload"]
        .into_iter()
        .any(|name| fields.has(name));
    !envelope && (fields.has("agrees_with_peer") || fields.has("revised_position"))
}

/// A challenge as it is printed, without an envelope.
fn is_challenge(fields: &Fields) -> bool {
    fields.has("challenger")
        && fields.has("challenged")
        && !fields.has("content")
        && !fields.has("payload")
}

fn canonical(mut fields: Fields, context: &AnswerContext<'_>) -> Result<Envelope, Fault> {
    let incomplete = |pointer| {
        Fault::invalid(
            pointer,
            "The agent's answer lacks a field.",
            "Answer with message_type and payload, or with {}.",
        )
    };
    let kind = fields
        .take("message_type")?
        .ok_or_else(|| incomplete("/message_type"))?;
    let payload = fields
        .take_raw("payload")
        .ok_or_else(|| incomplete("/payload"))?;
    let metadata: Option<Metadata> = fields.take("metadata")?;
    let reply_to: Option<String> = fields.take("reply_to")?;
    let (from, to) = (context.from.clone(), Recipient::Agent(context.to.clone()));
    // No id: whoever publishes it gives it one.
    let id = crate::MessageId::of_bytes("", payload.get().as_bytes());
    let envelope = Envelope::new(id, Timestamp::default(), from, to, kind, payload);
    let envelope = Envelope {
        metadata: metadata.unwrap_or_default(),
        reply_to,
        ..envelope
    };
    envelope.check_values()?;
    Ok(envelope)
}

/// Adds the recipient, which an answer need not name: without one, or with `null` as the specifications print it, some dialects would mean
/// everyone.
fn with_recipient(
    mut fields: Fields,
    dialect: Dialect,
    context: &AnswerContext<'_>,
) -> Result<Fields, Fault> {
    let named = match dialect {
        Dialect::Collaboration => "receiver_id",
        Dialect::Session => "target_agent_id",
        _ => return Ok(fields),
    };
    let is_null = |value: &RawValue| value.get() == "null";
    if fields.get(named).is_none_or(is_null) {
        fields.take_raw(named);
        fields.put(named, context.to)?;
    }
    Ok(fields)
}

/// The type that an answer names; `None` if it names only that it is an answer.
fn kind(fields: &Fields, dialect: Dialect) -> Result<Option<MessageType>, Fault> {
    let value = |name: &str| -> Result<Option<String>, Fault> {
        fields.get(name).map_or(Ok(None), |value| {
            value_from_json(value.get().as_bytes(), &fields.pointer(name))
        })
    };
    let typed = |name: &str, word: &str| {
        let token = Token::new(word);
        token
            .map(|token| Some(MessageType::from(token)))
            .map_err(|error| {
                Fault::invalid(
                    fields.pointer(name),
                    format!("No type has that name: {error}."),
                    "Name a type of the dialect.",
                )
            })
    };
    let of = |name: &str, kind: fn(&str) -> Option<String>| match value(name)? {
        None => Ok(None),
        Some(word) => kind(&word).map_or(Ok(None), |word| typed(name, &word)),
    };
    match dialect {
        Dialect::Panel => of("messageType", |word| Some(snake(word))),
        Dialect::Analyst if is_challenge(fields) => Ok(Some(MessageType::Challenge)),
        Dialect::Concord | Dialect::Analyst => of("message_type", |word| Some(word.to_owned())),
        Dialect::Session => of("interaction_type", |word| {
            Some(if word == "BROADCAST_QUERY" {
                "group_query".into()
            } else {
                word.to_ascii_lowercase()
            })
        }),
        Dialect::Collaboration | Dialect::Exchange => match overflow_type(fields) {
            Some(kind) => Ok(Some(kind)),
            None => of("message_type", |word| match word {
                word if word.eq_ignore_ascii_case("response") => None,
                word if word.eq_ignore_ascii_case("broadcast") => Some("notification".into()),
                word => Some(word.to_ascii_lowercase()),
            }),
        },
    }
}

/// The type in the overflow fields.
fn overflow_type(fields: &Fields) -> Option<MessageType> {
    let metadata = Fields::parse_leniently(fields.get("metadata")?.get().as_bytes())?;
    let overflow = Fields::parse_leniently(metadata.get(OVERFLOW_FIELD)?.get().as_bytes())?;
    serde_json::from_str(overflow.get("message_type")?.get()).ok()
}

/// A camel-case name in snake case.
fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
