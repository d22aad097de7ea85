use serde_json::{Value, json};

use super::*;
use crate::ErrorCode;
use crate::Token;
use crate::subject::SubjectSpace;

fn good() -> Value {
    json!({
        "message_id": "m-1", "timestamp": "2026-11-21T20:15:00.000Z",
        "from_agent": "alice", "to_agent": "coordinator", "message_type": "finding", "case_id": "c-1",
        "payload": {"summary": "fine"}, "metadata": {"confidence": 0.8}, "x_unknown": [1, 2],
    })
}

fn decode(value: &Value) -> Result<Envelope, Fault> {
    decode_bytes(value.to_string().as_bytes())
}

fn decode_bytes(bytes: &[u8]) -> Result<Envelope, Fault> {
    let subject = SubjectSpace::default()
        .parse("concord.v1.msg.c-1.alice.coordinator.finding")
        .unwrap();
    Envelope::decode(bytes, &subject)
}

#[test]
fn a_good_message_is_read_and_unknown_fields_do_not_hurt() {
    let envelope = decode(&good()).unwrap();
    assert_eq!(envelope.message_type, MessageType::Finding);
    assert_eq!(envelope.priority, Priority::Normal);
    assert_eq!(
        envelope.subject().clone(),
        decode(&good()).unwrap().subject()
    );
}

#[test]
fn a_message_that_names_no_case_belongs_to_that_of_its_subject() {
    let mut message = good();
    message.as_object_mut().unwrap().remove("case_id");
    let envelope = decode(&message).unwrap();
    assert_eq!(envelope.case_id.unwrap().as_str(), "c-1");
}

#[test]
fn each_fault_names_its_place() {
    let cases = [
        (
            "/metadata/confidence",
            json!({"metadata": {"confidence": 1.7}}),
        ),
        ("/from_agent", json!({"from_agent": "mallory"})),
        ("/to_agent", json!({"to_agent": "debate-facilitator"})),
        ("/message_type", json!({"message_type": "evidence"})),
        ("/case_id", json!({"case_id": "c-2"})),
        ("/message_id", json!({"message_id": "a b"})),
        ("/timestamp", json!({"timestamp": "noon"})),
        ("/priority", json!({"priority": "extreme"})),
        ("/metadata/version", json!({"metadata": {"version": "2.0"}})),
        (
            "/correlation_id",
            json!({"correlation_id": "x".repeat(257)}),
        ),
        ("/reply_to", json!({"reply_to": "x".repeat(257)})),
    ];
    for (pointer, change) in cases {
        let mut message = good();
        for (key, value) in change.as_object().unwrap() {
            message[key] = value.clone();
        }
        let fault = decode(&message).unwrap_err();
        let code = match pointer {
            "/from_agent" => ErrorCode::Unauthorized,
            _ => ErrorCode::InvalidRequest,
        };
        assert_eq!(
            (fault.pointer.as_str(), fault.code),
            (pointer, code),
            "{fault}"
        );
    }
}

#[test]
fn a_payload_is_an_object_whatever_the_type() {
    let mut message = good();
    message["payload"] = json!(["fine"]);
    assert_eq!(decode(&message).unwrap_err().pointer, "/payload");
}

#[test]
fn a_missing_field_is_named() {
    let mut message = good();
    message.as_object_mut().unwrap().remove("payload");
    let fault = decode(&message).unwrap_err();
    assert!(fault.message.contains("payload"), "{fault}");
}

#[test]
fn what_is_not_json_is_refused_without_harm() {
    const FIELDS_AS_ARRAY: &[u8] =
        br#"["m-1", "2026-11-21T20:15:00Z", "alice", "coordinator", "finding", "c-1", null, null,
        null, "normal", false, null, {}, {}]"#;
    let deep = "[".repeat(100_000);
    let deep_payload = good()
        .to_string()
        .replace(r#""fine""#, &("[".repeat(100_000) + &"]".repeat(100_000)));
    for bytes in [
        b"".as_slice(),
        b"hello",
        b"\xff\xfe",
        deep.as_bytes(),
        b"null",
        b"[]",
        b"{} {}",
        FIELDS_AS_ARRAY,
    ] {
        assert_eq!(
            decode_bytes(bytes).unwrap_err().code,
            ErrorCode::InvalidRequest
        );
    }
    let envelope = decode_bytes(deep_payload.as_bytes()).unwrap();
    let fault = envelope.payload::<Value>().unwrap_err();
    assert!(fault.pointer.starts_with("/payload"), "{fault}");
}

#[test]
fn five_megabytes_are_too_many() {
    let fault = decode_bytes(&vec![b' '; 5_000_000]).unwrap_err();
    assert_eq!(fault.code, ErrorCode::CapacityExceeded);
}

#[test]
fn every_known_type_is_a_token_and_comes_back() {
    for name in MessageType::KNOWN {
        let token = Token::new(*name).unwrap();
        let kind = MessageType::from(token.clone());
        assert!(!matches!(kind, MessageType::Unknown(_)), "{name}");
        assert_eq!(kind.token(), token);
    }
}

/// A struct can be read from a list, by the order of its fields: whoever looks at fields by their names would not see them.
#[test]
fn a_list_is_no_object() {
    #[derive(Debug, serde::Deserialize)]
    struct Order {
        by: String,
    }
    let read = |text: &str| crate::envelope::from_json::<Order>(text.as_bytes(), "/payload");
    assert_eq!(read(r#" {"by": "olga"} "#).unwrap().by, "olga");
    for list in [r#"["olga"]"#, " \n[\"olga\"]", "[]"] {
        let fault = read(list).unwrap_err();
        assert_eq!(fault.pointer, "/payload");
        assert_eq!(fault.message, "It is not a JSON object.");
    }
}

#[test]
fn a_list_is_no_object_below_the_outermost_level_either() {
    use crate::payload::{Request, Response};
    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Form {
        Order { by: String },
    }
    #[derive(Debug, serde::Deserialize)]
    struct Orders {
        orders: Vec<Option<Form>>,
        by_name: std::collections::BTreeMap<String, Inner>,
        // A pair is a list.
        pair: Option<(u8, u8)>,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        by: String,
    }
    let read = |fields: Value| {
        crate::envelope::from_json::<Orders>(fields.to_string().as_bytes(), "/payload")
    };
    let good = json!({
        "orders": [{ "order": { "by": "olga" } }, null], "by_name": { "x": { "by": "ann" } }, "pair": [1, 2],
    });
    let orders = read(good).unwrap();
    let Form::Order { by } = orders.orders[0].as_ref().unwrap();
    assert_eq!(
        (by.as_str(), orders.by_name["x"].by.as_str()),
        ("olga", "ann")
    );
    assert_eq!(orders.pair, Some((1, 2)));
    for (fields, pointer) in [
        (
            json!({ "orders": [null, { "order": ["olga"] }], "by_name": {} }),
            "/payload/orders/1/order",
        ),
        (
            json!({ "orders": [], "by_name": { "x": ["ann"] } }),
            "/payload/by_name/x",
        ),
    ] {
        let fault = read(fields).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{fault}");
        assert_eq!(fault.message, "It is a list, where an object is expected.");
        assert_eq!(fault.advice, "Write an object there.");
    }
    // Values of any form stay as they are.
    let message = json!({ "action": "x", "parameters": [["a"], { "b": [1] }] });
    let request: Request =
        crate::envelope::from_json(message.to_string().as_bytes(), "/payload").unwrap();
    assert_eq!(request.parameters, message["parameters"]);
    let response = json!({ "status": "success", "errors": ["one", ["two"]] });
    let response: Response =
        crate::envelope::from_json(response.to_string().as_bytes(), "/payload").unwrap();
    assert_eq!(response.errors, ["one", "[\"two\"]"]);
}

#[test]
fn null_is_an_absent_field_where_a_field_may_be_absent() {
    for field in [
        "case_id",
        "correlation_id",
        "reply_to",
        "round",
        "priority",
        "requires_response",
        "deadline",
        "metadata",
    ] {
        let mut message = good();
        message[field] = Value::Null;
        let read = decode(&message).unwrap_or_else(|fault| panic!("{field}: {fault}"));
        message.as_object_mut().unwrap().remove(field);
        let without = serde_json::to_value(decode(&message).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), without, "{field}");
    }
}

#[test]
fn json_that_is_no_word_is_not_said_to_be_no_json() {
    let mut message = good();
    message["priority"] = json!(5);
    let fault = decode(&message).unwrap_err();
    assert_eq!(fault.pointer, "/priority");
    assert!(!fault.advice.contains("UTF-8"), "{fault}");
    assert!(!fault.message.contains("column"), "{fault}");
    let fault = decode_bytes(br#"{"priority": }"#).unwrap_err();
    assert!(fault.message.contains("column 14"), "{fault}");
}

#[test]
fn what_is_answered_may_stand_in_the_result_of_a_response() {
    let mut message = good();
    message["payload"] = json!({ "status": "success", "result": { "summary": "Fine.", "risk_score": 700 }, "errors": [] });
    let read = decode(&message).unwrap();
    let fault = read.answered(crate::payload::Finding::read).unwrap_err();
    assert_eq!(fault.pointer, "/payload/result/risk_score");
    let bare = read.without_response_form();
    assert_eq!(
        bare.payload::<Value>().unwrap(),
        json!({ "summary": "Fine.", "risk_score": 700 })
    );
    let fault = bare.answered(crate::payload::Finding::read).unwrap_err();
    assert_eq!(fault.pointer, "/payload/risk_score");
}
