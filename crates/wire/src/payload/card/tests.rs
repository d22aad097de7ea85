use serde_json::{Value, json};

use super::*;

fn card(fields: Value) -> Card {
    let mut whole = json!({ "agent_id": "ann" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

#[test]
fn a_card_needs_nothing_but_a_name() {
    let card = card(json!({}));
    assert_eq!(card, Card::new(AgentId::new("ann").unwrap()));
    assert_eq!(card.check(""), Ok(()));
    assert_eq!(
        serde_json::to_value(&card).unwrap(),
        json!({ "agent_id": "ann", "dialect": "concord" })
    );
    assert!(serde_json::from_value::<Card>(json!({ "agent_id": "ann", "skils": [] })).is_err());
}

#[test]
fn what_is_good_is_accepted() {
    let skill = json!({ "name": "tax", "description": "Taxes", "tags": ["vat"], "examples": ["What is VAT?"] });
    for fields in [
        json!({ "skills": [skill], "domains": ["tax"], "triggers": ["vat"], "dialect": "panel" }),
        json!({ "capacity": 10_000, "heartbeat_ms": 100, "name": "Ann", "version": "2" }),
    ] {
        assert_eq!(card(fields.clone()).check("/p"), Ok(()), "{fields}");
    }
}

/// Checks that a card with these fields is refused at this place.
fn refused(cards: impl IntoIterator<Item = (Value, &'static str)>) {
    for (fields, pointer) in cards {
        let fault = card(fields.clone()).check("/p").unwrap_err();
        assert_eq!(fault.pointer, pointer, "{fields}");
    }
}

#[test]
fn bad_skills_are_refused_at_their_place() {
    let many: Vec<Value> = (0..10_000)
        .map(|n| json!({ "name": format!("s{n}") }))
        .collect();
    let long = "x".repeat(1_025);
    let wide: Vec<Value> = (0..64)
        .map(|n| json!({ "name": format!("s{n}"), "description": "x".repeat(1_024) }))
        .collect();
    refused([
        (json!({ "skills": many }), "/p/skills"),
        (
            json!({ "skills": [{ "name": "a" }, { "name": "a" }] }),
            "/p/skills/1/name",
        ),
        (json!({ "skills": [{ "name": " " }] }), "/p/skills/0/name"),
        (
            json!({ "skills": [{ "name": "a", "description": long }] }),
            "/p/skills/0/description",
        ),
        (
            json!({ "skills": [{ "name": "a", "examples": vec!["x"; 33] }] }),
            "/p/skills/0/examples",
        ),
        (
            json!({ "skills": [{ "name": "a", "examples": ["x", long] }] }),
            "/p/skills/0/examples/1",
        ),
        (
            json!({ "skills": [{ "name": "a", "tags": [""] }] }),
            "/p/skills/0/tags/0",
        ),
        (json!({ "skills": wide }), "/p"),
    ]);
}

#[test]
fn bad_actions_are_refused_at_their_place() {
    refused([
        (
            json!({ "actions": vec![json!({ "name": "x" }); 33] }),
            "/p/actions",
        ),
        (
            json!({ "actions": [{ "name": "x" }, { "name": "x" }] }),
            "/p/actions/1/name",
        ),
        (json!({ "actions": [{ "name": "" }] }), "/p/actions/0/name"),
        (
            json!({ "actions": [{ "name": "batch" }] }),
            "/p/actions/0/name",
        ),
        (
            json!({ "actions": [{ "name": "run_tests", "parameters": {} }] }),
            "/p/actions/0/name",
        ),
        (
            json!({ "actions": [{ "name": "x", "parameters": { "not": {} } }] }),
            "/p/actions/0/parameters/not",
        ),
        (
            json!({ "actions": [{ "name": "x", "result": { "type": "x" } }] }),
            "/p/actions/0/result/type",
        ),
    ]);
}

#[test]
fn other_bad_fields_are_refused_at_their_place() {
    let long = "x".repeat(1_025);
    refused([
        (json!({ "domains": vec!["tax"; 65] }), "/p/domains"),
        (json!({ "triggers": ["ok", ""] }), "/p/triggers/1"),
        (
            json!({ "encodings": ["gzip", "gzip", "gzip", "gzip"] }),
            "/p/encodings",
        ),
        (json!({ "name": "" }), "/p/name"),
        (json!({ "description": long }), "/p/description"),
        (json!({ "capacity": 0 }), "/p/capacity"),
        (json!({ "heartbeat_ms": 99 }), "/p/heartbeat_ms"),
    ]);
}

#[test]
fn a_request_is_checked_by_the_card_where_it_names_the_action() {
    let parameters = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
    let card = card(
        json!({ "actions": [{ "name": "translate", "parameters": parameters }, { "name": "rest" }] }),
    );
    assert_eq!(card.check("/p"), Ok(()));
    let check = |action: &str, parameters: Value| {
        let request: Request =
            serde_json::from_value(json!({ "action": action, "parameters": parameters })).unwrap();
        card.check_request(&request).map_err(|fault| fault.pointer)
    };
    for (action, parameters) in [
        ("translate", json!({ "text": "x" })),
        ("rest", json!("whatever")),
        ("dance", json!(null)),
        (
            "batch",
            json!({ "requests": [{ "action": "translate", "parameters": { "text": "x" } }, { "action": "rest" }] }),
        ),
    ] {
        assert_eq!(check(action, parameters), Ok(()), "{action}");
    }
    for (action, parameters, pointer) in [
        ("translate", json!(null), "/payload/parameters"),
        (
            "translate",
            json!({ "text": 1 }),
            "/payload/parameters/text",
        ),
        (
            "batch",
            json!({ "requests": [{ "action": "rest" }, { "action": "translate", "parameters": { "text": 1 } }] }),
            "/payload/parameters/requests/1/parameters/text",
        ),
    ] {
        assert_eq!(
            check(action, parameters),
            Err(pointer.to_owned()),
            "{action}"
        );
    }
}
