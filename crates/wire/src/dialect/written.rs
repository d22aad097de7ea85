//! Where something stands in a message as its sender wrote it, by where it stands in the envelope that the message is read as.

use serde_json::value::RawValue;

use super::fields::{Fields, child_pointer};
use super::{Dialect, analyst, content, panel};
use crate::MessageType;

/// The pointer into a message in a dialect for a pointer into its envelope. What has no place of its own there, and what points into the
/// message as it is written already, stays as it is.
pub fn written_pointer(
    pointer: &str,
    bytes: &[u8],
    dialect: Dialect,
    kind: &MessageType,
) -> String {
    let written = (dialect != Dialect::Concord).then(|| Fields::parse_leniently(bytes));
    let Some(fields) = written.flatten() else {
        return pointer.to_owned();
    };
    let (first, rest) = split(pointer);
    let found = match first {
        "payload" if !rest.is_empty() && !fields.has("payload") => {
            in_content(rest, &fields, dialect, kind)
        }
        // A request without an action states it in its content.
        "deadline" if !fields.has("deadline") => content_of(&fields)
            .filter(|content| content.has("deadline"))
            .map(|_| "/content/deadline".to_owned()),
        _ if fields.has(first) => None,
        _ => name_in(dialect, first).map(|name| child_pointer("", name) + rest),
    };
    found.unwrap_or_else(|| pointer.to_owned())
}

/// Advice with the names that fields of the envelope have in the dialect of whoever is advised.
pub fn written_advice(advice: &str, dialect: Dialect) -> String {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut written = String::with_capacity(advice.len());
    for word in advice.split_inclusive(|letter| !is_of_name(letter)) {
        let name = word.trim_end_matches(|letter| !is_of_name(letter));
        match (name, dialect) {
            ("reply_to", _) => written.push_str(name_in(dialect, name).unwrap_or(name)),
            // These have no field of their own for it.
            ("correlation_id", Dialect::Session | Dialect::Collaboration) => {
                written.push_str("metadata.concord.correlation_id");
            }
            ("correlation_id", Dialect::Panel | Dialect::Analyst) => {
                written.push_str("content.concord.correlation_id");
            }
            _ => written.push_str(name),
        }
        written.push_str(word.get(name.len()..).unwrap_or_default());
    }
    written
}

/// The first name of a pointer, and what follows it.
fn split(pointer: &str) -> (&str, &str) {
    let names = pointer.strip_prefix('/').unwrap_or_default();
    let at = names.find('/').unwrap_or(names.len());
    names.split_at_checked(at).unwrap_or((names, ""))
}

/// The place in what a message says.
fn in_content(rest: &str, fields: &Fields, dialect: Dialect, kind: &MessageType) -> Option<String> {
    if !fields.has("content") {
        // The message is what it says, without an envelope.
        return Some(rest.to_owned());
    }
    // Words have no places in them.
    let Some(content) = content_of(fields) else {
        return Some("/content".to_owned());
    };
    let names_no_action = *kind == MessageType::Request
        && matches!(dialect, Dialect::Collaboration | Dialect::Analyst)
        && !content.has("action");
    let rest = match names_no_action {
        true => rest.strip_prefix("/parameters")?,
        false => rest,
    };
    let (name, below) = split(rest);
    let renamed: &[(&str, &str)] = match dialect {
        Dialect::Panel => &panel::FINDING,
        Dialect::Analyst => &[analyst::FINDING],
        _ => &[],
    };
    let own = renamed
        .iter()
        .find(|(own, canonical)| *canonical == name && content.has(own));
    Some(match own {
        Some((own, _)) => format!("/content/{own}{below}"),
        None => format!("/content{rest}"),
    })
}

/// The content, where it is an object or one as serialised JSON.
fn content_of(fields: &Fields) -> Option<Fields> {
    let content: &RawValue = fields.get("content")?;
    match serde_json::from_str::<String>(content.get()) {
        Ok(text) if content::is_object(&text) => Fields::parse_leniently(text.as_bytes()),
        Ok(_) => None,
        Err(_) => Fields::parse_leniently(content.get().as_bytes()),
    }
}

/// The name that a dialect has for a field of the envelope, where it has another.
fn name_in(dialect: Dialect, field: &str) -> Option<&'static str> {
    use Dialect::{Collaboration, Panel, Session};
    Some(match (dialect, field) {
        (Panel | Collaboration, "message_id") => "id",
        (Panel, "from_agent") => "sender",
        (Panel, "to_agent") => "recipients",
        (Panel, "message_type") => "messageType",
        (Panel, "reply_to") => "replyTo",
        (Collaboration, "from_agent") => "sender_id",
        (Collaboration, "to_agent") => "receiver_id",
        (Session, "from_agent") => "source_agent_id",
        (Session, "to_agent") => "target_agent_id",
        (Session, "message_type") => "interaction_type",
        (Session, "case_id") => "conversation_id",
        (Session, "reply_to") => "reply_to_message_id",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dialect and the type of a message, what is written, the place in the envelope, and the place in what is written.
    const PLACES: &str = r#"
panel | finding | {"content": "{\"riskScore\":700}"} | /payload/risk_score | /content/riskScore
panel | finding | {"content": "{\"riskScore\":700}"} | /payload/summary | /content/summary
panel | agreement | {"content": "Yes."} | /payload/agrees_with | /content
panel | agreement | {"content": "Yes."} | /reply_to | /replyTo
panel | revision | {"revised_position": 5} | /payload/value | /value
panel | revision | {"content": "", "reply_to": 5} | /reply_to | /reply_to
analyst | finding | {"content": {"finding": ""}} | /payload/summary | /content/finding
analyst | request | {"content": {"deadline": "x"}} | /payload/parameters/a/b | /content/a/b
analyst | request | {"content": {"deadline": "x"}} | /deadline | /content/deadline
analyst | request | {"content": {}, "deadline": "x"} | /deadline | /deadline
analyst | request | {"content": {"action": "x"}} | /payload/parameters/a | /content/parameters/a
collaboration | bid | {"content": {"price": "x"}} | /payload/price | /content/price
session | finding | {"content": "Fine."} | /case_id | /conversation_id
session | finding | {"content": "Fine."} | /content | /content
exchange | request | {"payload": {"action": 5}} | /payload/action | /payload/action
exchange | request | {"action": 5} | /payload/action | /action
panel | finding | {"content": "{}", "payload": {}} | /payload | /payload
concord | finding | {"content": "Fine."} | /payload/x | /payload/x
panel | finding | no JSON | /payload/x | /payload/x
"#;

    #[test]
    fn advice_names_what_its_reader_writes() {
        let advice =
            "Set reply_to to the question's message_id, or correlation_id to its debate_id.";
        for (dialect, written) in [
            (Dialect::Concord, advice),
            (
                Dialect::Session,
                "Set reply_to_message_id to the question's message_id, or metadata.concord.correlation_id to its debate_id.",
            ),
            (
                Dialect::Panel,
                "Set replyTo to the question's message_id, or content.concord.correlation_id to its debate_id.",
            ),
        ] {
            assert_eq!(written_advice(advice, dialect), written);
        }
    }

    #[test]
    fn a_fault_names_what_its_sender_wrote() {
        for row in PLACES.lines().filter(|row| !row.is_empty()) {
            let columns: Vec<&str> = row.split(" | ").collect();
            let [dialect, kind, message, pointer, written] = columns.try_into().unwrap();
            let dialect = Dialect::parse(dialect).unwrap();
            let kind = MessageType::from(crate::Token::new(kind).unwrap());
            let found = written_pointer(pointer, message.as_bytes(), dialect, &kind);
            assert_eq!(found, written, "{row}");
        }
    }
}
