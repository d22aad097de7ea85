//! The text of a message, for matching.

use concord_domain::text::beginning;
use concord_wire::{AgentId, Envelope};
use serde_json::Value;

/// Most bytes of text that are taken from a message.
const TEXT_BYTES_MAX: usize = 4_096;
/// Most preferred agents that are read.
const PREFERRED_MAX: usize = 64;
/// The payload fields that hold the text of a message, in the order in which they are looked for.
const FIELDS: [&str; 7] = [
    "content", "question", "request", "offer", "summary", "text", "so_far",
];

/// The text of a message: the field that is meant for it or, where there is none, every text of the payload.
pub(super) fn of(envelope: &Envelope) -> String {
    let payload: Value = envelope.payload().unwrap_or_default();
    let named = FIELDS
        .iter()
        .find_map(|field| payload.get(field).and_then(Value::as_str));
    if let Some(text) = named {
        return beginning(text, TEXT_BYTES_MAX).to_owned();
    }
    let mut text = String::new();
    collect(&payload, &mut text);
    text
}

fn collect(value: &Value, text: &mut String) {
    if text.len() >= TEXT_BYTES_MAX {
        return;
    }
    match value {
        Value::String(more) => {
            if !text.is_empty() {
                text.push(' ');
            }
            let room = TEXT_BYTES_MAX.saturating_sub(text.len());
            text.push_str(beginning(more, room));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
        Value::Object(fields) => fields.values().for_each(|item| collect(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The agents that a peer request prefers, from the metadata or the payload.
pub(super) fn preferred(envelope: &Envelope) -> Vec<AgentId> {
    let of_metadata = envelope.metadata.extensions.get("preferred_agents");
    let named: Option<Value> = match of_metadata {
        Some(raw) => serde_json::from_str(raw.get()).ok(),
        None => envelope
            .payload::<Value>()
            .ok()
            .and_then(|mut payload| Some(payload.get_mut("preferred_agents")?.take())),
    };
    let Some(Value::Array(named)) = named else {
        return Vec::new();
    };
    let ids = named.iter().take(PREFERRED_MAX).filter_map(Value::as_str);
    ids.filter_map(|id| AgentId::new(id).ok()).collect()
}

/// Whether the payload or the metadata says that the message asks for objections.
pub(super) fn asks_for_objections(envelope: &Envelope) -> bool {
    const NAME: &str = "asks_for";
    let of_metadata = envelope.metadata.extensions.get(NAME);
    let said: Option<Value> = match of_metadata {
        Some(raw) => serde_json::from_str(raw.get()).ok(),
        None => envelope
            .payload::<Value>()
            .ok()
            .and_then(|mut payload| Some(payload.get_mut(NAME)?.take())),
    };
    said.is_some_and(|said| said == "objections")
}

#[cfg(test)]
mod tests {
    use concord_wire::subject::SubjectSpace;
    use serde_json::json;

    use super::*;

    fn message(payload: Value, metadata: Value) -> Envelope {
        let bytes = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "ann", "to_agent": "_any",
            "message_type": "peer_request", "payload": payload, "metadata": metadata,
        });
        let subject = SubjectSpace::default()
            .parse("concord.v1.msg._.ann._any.peer_request")
            .unwrap();
        Envelope::decode(bytes.to_string().as_bytes(), &subject).unwrap()
    }

    #[test]
    fn the_text_is_the_field_meant_for_it_or_all_there_is_within_bounds() {
        for (payload, text) in [
            (
                json!({ "content": "Who knows OAuth?", "more": "x" }),
                "Who knows OAuth?",
            ),
            (
                json!({ "a": ["Who", { "b": "knows?" }], "n": 7 }),
                "Who knows?",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(of(&message(payload, json!({}))), text);
        }
        let long = of(&message(json!({ "content": "ä".repeat(4_000) }), json!({})));
        assert_eq!(long.len(), 4_096);
        assert!(of(&message(json!({ "a": vec!["word"; 10_000] }), json!({}))).len() <= 4_097);
    }

    #[test]
    fn preferred_agents_are_read_from_either_place_and_nonsense_is_nobody() {
        let ids = |payload, metadata| -> Vec<String> {
            preferred(&message(payload, metadata))
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(
            ids(json!({}), json!({ "preferred_agents": ["bob", 7, "a.b"] })),
            ["bob"]
        );
        assert_eq!(
            ids(json!({ "preferred_agents": ["eve"] }), json!({})),
            ["eve"]
        );
        assert!(ids(json!({}), json!({ "preferred_agents": null })).is_empty());
        assert_eq!(
            ids(json!({ "preferred_agents": vec!["eve"; 1_000] }), json!({})).len(),
            64
        );
    }
}
