//! What is refused, and where.

use serde_json::{Value, json};

use super::*;
use crate::ErrorCode;

const FINDING: &str = "concord.v1.msg.c-1.ann.coordinator.finding";

fn good(dialect: Dialect) -> Value {
    let content = json!({ "summary": "fine", "riskScore": 20, "confidence": 0.9 });
    match dialect {
        Dialect::Concord => json!({
            "message_id": "m-1", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "ann", "to_agent": "coordinator",
            "message_type": "finding", "payload": { "summary": "fine" },
        }),
        Dialect::Panel => json!({
            "id": "m-1", "round": 0, "sender": "ann", "recipients": ["coordinator"], "messageType": "finding",
            "content": content.to_string(), "timestamp": 1_770_624_000_000_i64,
        }),
        Dialect::Collaboration => json!({
            "id": "m-1", "sender_id": "ann", "receiver_id": "coordinator", "message_type": "RESPONSE",
            "content": { "summary": "fine" }, "metadata": { "confidence": 0.9 },
        }),
        Dialect::Analyst => json!({
            "from_agent": "ann", "to_agent": "coordinator", "message_type": "finding", "priority": "normal",
            "content": { "finding": "fine", "confidence": 0.9 }, "timestamp": "2026-01-01T00:00:00Z",
        }),
        Dialect::Session => json!({
            "interaction_type": "FINDING", "source_agent_id": "ann", "target_agent_id": "coordinator",
            "conversation_id": "c-1", "content": "fine", "metadata": { "confidence": 0.9 },
        }),
        Dialect::Exchange => json!({
            "message_id": "m-1", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "ann", "to_agent": "coordinator",
            "message_type": "response", "payload": { "summary": "fine" }, "metadata": { "confidence": 0.9 },
        }),
    }
}

fn fault(message: &Value, dialect: Option<Dialect>) -> Fault {
    match read(message.to_string().as_bytes(), dialect, &subject(FINDING)) {
        Ok(read) => panic!("{message} is read as {read:?}"),
        Err(fault) => fault,
    }
}

#[test]
fn what_is_good_is_a_finding_in_every_dialect() {
    for dialect in Dialect::ALL {
        let message = good(dialect).to_string();
        for declared in [Some(dialect), None] {
            let (envelope, spoken) = read(message.as_bytes(), declared, &subject(FINDING)).unwrap();
            assert_eq!(spoken, dialect);
            let finding: crate::payload::Finding = envelope.payload().unwrap();
            assert_eq!(finding.summary, "fine");
        }
    }
}

/// What makes a good message of a dialect a bad one: the dialect, the fields that are changed, and the place of the fault.
const FAULTS: &str = r##"
panel | {"id": 7} | /id
panel | {"id": "a.b"} | /id
panel | {"round": -1} | /round
panel | {"recipients": "coordinator"} | /recipients
panel | {"recipients": ["ben"]} | /recipients
panel | {"recipients": []} | /recipients
panel | {"messageType": "revision"} | /messageType
panel | {"timestamp": "noon"} | /timestamp
panel | {"timestamp": 9223372036854775807} | /timestamp
panel | {"content": null} | /content
panel | {"content": "{\"summary\":\"a\",\"confidence\":2}"} | /content/confidence
panel | {"content": "{\"summary\":\"a\",\"summary\":\"b\"}"} | /content/summary
panel | {"content": "{\"riskScore\":1,\"risk_score\":2}"} | /content/risk_score
panel | {"content": "{\"concord\":{\"rond\":1}}"} | /content/concord/rond
panel | {"payload": {}} | /payload
panel | {"replyTo": {}} | /replyTo
collaboration | {"receiver_id": null} | /receiver_id
collaboration | {"receiver_id": "ben"} | /receiver_id
collaboration | {"message_type": "FINDINGS"} | /message_type
collaboration | {"message_type": "request"} | /message_type
collaboration | {"metadata": []} | /metadata
collaboration | {"metadata": {"confidence": 2}} | /metadata/confidence
collaboration | {"metadata": {"concord": {"case_id": "c-2"}}} | /metadata/concord/case_id
collaboration | {"metadata": {"concord": {"message_type": "ruling"}}} | /metadata/concord/message_type
analyst | {"to_agent": "all"} | /to_agent
analyst | {"message_type": "alert"} | /message_type
analyst | {"priority": "critical-path"} | /priority
analyst | {"requires_response": "yes"} | /requires_response
analyst | {"timestamp": 5} | /timestamp
analyst | {"content": {"finding": "a", "summary": "b"}} | /content/summary
session | {"interaction_type": "GROUP_QUERY"} | /interaction_type
session | {"target_agent_id": null} | /target_agent_id
session | {"conversation_id": "c-2"} | /conversation_id
session | {"metadata": {"version": "2.0"}} | /metadata/version
exchange | {"message_type": "request"} | /message_type
exchange | {"payload": "text"} | /payload
exchange | {"timestamp": "ISO8601"} | /timestamp
exchange | {"metadata": {"processing_time_ms": -1}} | /metadata/processing_time_ms
exchange | {"metadata": {"processing_time_ms": "12"}} | /metadata/processing_time_ms
"##;

#[test]
fn each_fault_names_its_place() {
    for [dialect, change, pointer] in rows(FAULTS) {
        let dialect = Dialect::parse(dialect).unwrap();
        let mut message = good(dialect);
        change_fields(&mut message, change);
        for declared in [Some(dialect), None] {
            let fault = fault(&message, declared);
            assert_eq!(
                (fault.pointer.as_str(), fault.code),
                (pointer, ErrorCode::InvalidRequest),
                "{change}: {fault}"
            );
        }
    }
}

/// The rows of a table whose columns have ` | ` between them.
fn rows<const COLUMNS: usize>(table: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let columns: Vec<&str> = line.split(" | ").collect();
        columns.try_into().unwrap()
    })
}

/// Changes some fields of a message, or adds them; `change` is a JSON object.
fn change_fields(message: &mut Value, change: &str) {
    let change: serde_json::Map<String, Value> = serde_json::from_str(change).unwrap();
    message.as_object_mut().unwrap().extend(change);
}

#[test]
fn nobody_speaks_for_another_in_any_dialect() {
    for (dialect, name) in [
        (Dialect::Concord, "from_agent"),
        (Dialect::Panel, "sender"),
        (Dialect::Panel, "from_agent"),
        (Dialect::Collaboration, "sender_id"),
        (Dialect::Analyst, "from_agent"),
        (Dialect::Session, "source_agent_id"),
        (Dialect::Exchange, "from_agent"),
    ] {
        let mut message = good(dialect);
        message[name] = "mallory".into();
        for declared in [Some(dialect), None] {
            let fault = fault(&message, declared);
            assert_eq!(
                (fault.pointer, fault.code),
                (format!("/{name}"), ErrorCode::Unauthorized)
            );
        }
    }
}

#[test]
fn what_is_hostile_is_refused_without_harm() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    for dialect in Dialect::ALL {
        let good = good(dialect).to_string();
        let twice = good.replacen('{', r#"{"x":1,"x":2,"#, 1);
        let broken: Vec<u8> = [good.as_bytes(), b"\xff"].concat();
        let inside = good
            .replace("fine", "\u{1}")
            .into_bytes()
            .into_iter()
            .map(|b| if b == 1 { 0xff } else { b });
        let bad: [&[u8]; 10] = [
            b"",
            b"[]",
            b"null",
            b"\"text\"",
            b"\xff\xfe",
            b"{",
            deep.as_bytes(),
            objects.as_bytes(),
            &broken,
            &vec![b' '; 2 << 20],
        ];
        for bytes in bad {
            assert!(
                read(bytes, Some(dialect), &subject(FINDING)).is_err(),
                "{dialect}"
            );
            assert!(read(bytes, None, &subject(FINDING)).is_err(), "{dialect}");
        }
        if dialect != Dialect::Concord {
            assert_eq!(
                read(twice.as_bytes(), Some(dialect), &subject(FINDING))
                    .unwrap_err()
                    .pointer,
                "/x"
            );
        }
        let _ = read(
            &inside.collect::<Vec<_>>(),
            Some(dialect),
            &subject(FINDING),
        );
        // In a field that nobody reads, depth does no harm, and is kept.
        let kept = good.replacen('{', &format!(r#"{{"x":{deep},"#), 1);
        let (envelope, _) = read(kept.as_bytes(), Some(dialect), &subject(FINDING)).unwrap();
        let written = String::from_utf8(write(&envelope, dialect).unwrap()).unwrap();
        assert!(written.contains(&deep), "{dialect}");
    }
}

/// What a dialect has no words for: the dialect, the message type, the fields of the canonical envelope, and the place of the
/// fault.
const UNSAYABLE: &str = r##"
panel | finding | {"payload": {"riskScore": 1}} | /payload/riskScore
panel | finding | {"payload": {"confidence": 1}} | /payload/confidence
panel | finding | {"payload": {"concord": 1}} | /payload/concord
panel | finding | {"sender": 1} | /sender
panel | my-type | {} | /message_type
panel | my_Type | {} | /message_type
collaboration | finding | {"metadata": {"concord": 1}} | /metadata/concord
collaboration | finding | {"content": 1} | /content
analyst | finding | {"payload": {"finding": 1}} | /payload/finding
analyst | alert | {"payload": {"confidence": 1}, "metadata": {"confidence": 0.5}} | /payload/confidence
panel | alert | {"payload": {"confidence": "high"}} | /payload/confidence
session | myType | {} | /message_type
session | finding | {"target_agent_id": 1} | /target_agent_id
exchange | finding | {"metadata": {"concord": {"x": 1}}} | /metadata/concord
"##;

#[test]
fn what_a_dialect_cannot_say_is_a_fault_with_its_place() {
    for [dialect, kind, change, pointer] in rows(UNSAYABLE) {
        let dialect = Dialect::parse(dialect).unwrap();
        let mut message = good(Dialect::Concord);
        message["message_type"] = kind.into();
        message["case_id"] = "c-1".into();
        change_fields(&mut message, change);
        let subject = subject(&FINDING.replace("finding", kind));
        let envelope = Envelope::decode(message.to_string().as_bytes(), &subject).unwrap();
        let fault = write(&envelope, dialect).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{dialect} {kind} {change}: {fault}");
    }
}

#[test]
fn the_confidence_of_an_alert_is_said_once_wherever_it_stands() {
    let subject = subject(&FINDING.replace("finding", "alert"));
    for metadata in [json!({}), json!({ "confidence": 0.85 })] {
        let mut message = good(Dialect::Concord);
        message["message_type"] = "alert".into();
        message["payload"] = json!({ "event_type": "rate_move", "confidence": 0.85 });
        message["metadata"] = metadata;
        let envelope = Envelope::decode(message.to_string().as_bytes(), &subject).unwrap();
        for dialect in Dialect::ALL {
            let written = write(&envelope, dialect).unwrap();
            let (read, _) = read(&written, Some(dialect), &subject).unwrap();
            let alert: crate::payload::Alert = read.payload().unwrap();
            let stated = alert.confidence.or(read.metadata.confidence);
            assert_eq!(stated, Some(0.85), "{dialect}");
        }
    }
}

#[test]
fn what_does_not_fit_any_more_is_over_capacity() {
    let mut message = good(Dialect::Concord);
    // As text inside a text, each quotation mark needs three characters more.
    message["payload"]["summary"] = "\"".repeat(400_000).into();
    let envelope = Envelope::decode(message.to_string().as_bytes(), &subject(FINDING)).unwrap();
    assert_eq!(
        write(&envelope, Dialect::Panel).unwrap_err().code,
        ErrorCode::CapacityExceeded
    );
}

#[test]
fn the_types_of_specification_2_are_read_in_any_case() {
    let request = "concord.v1.msg._.ann.coordinator.request";
    for word in ["REQUEST", "request", "Request"] {
        let message = json!({
            "id": "m-1", "sender_id": "ann", "receiver_id": "coordinator", "message_type": word,
            "content": { "action": "open_case" }, "metadata": {},
        });
        let subject = SubjectSpace::default().parse(request).unwrap();
        for declared in [None, Some(Dialect::Collaboration)] {
            let read = read(message.to_string().as_bytes(), declared, &subject);
            let (envelope, dialect) = read.unwrap_or_else(|fault| panic!("{word}: {fault}"));
            assert_eq!(dialect, Dialect::Collaboration);
            assert_eq!(envelope.message_type, crate::MessageType::Request);
        }
    }
}

#[test]
fn what_is_a_response_by_its_type_is_read_as_what_was_asked_for() {
    let mut message = good(Dialect::Collaboration);
    message["content"] = json!("I stay.");
    let subject = SubjectSpace::default();
    let subject = subject
        .parse("concord.v1.msg.c-1.ann.coordinator.response")
        .unwrap();
    let (response, _) = read(message.to_string().as_bytes(), None, &subject).unwrap();
    for (kind, field) in [
        (crate::MessageType::Finding, "summary"),
        (crate::MessageType::Disagreement, "reasoning"),
    ] {
        let read = retyped(response.clone(), kind.clone());
        assert_eq!(read.message_type, kind);
        assert_eq!(
            read.payload::<Value>().unwrap(),
            json!({ field: "I stay." })
        );
    }
}
