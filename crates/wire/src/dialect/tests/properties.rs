//! What is written is what is read, where it can be written.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{MessageType, Timestamp};

/// Names of fields that no dialect uses, and, in the second list, those that some do.
const FREE: [&str; 8] = [
    "summary",
    "content",
    "reasoning",
    "risk_score",
    "criticalIssues",
    "x",
    "y~/z",
    "evidence",
];
const TAKEN: [&str; 8] = [
    "confidence",
    "finding",
    "riskScore",
    "concord",
    "id",
    "sender",
    "action",
    "deadline",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has it", |number| number.is_finite())
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("{\"looks\": \"like JSON\"}")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

fn object(names: &'static [&'static str], most: usize) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(names), value(), 0..most)
        .prop_map(|map| json!(map))
}

prop_compose! {
    fn message(names: &'static [&'static str])(
        kind in prop::sample::select(MessageType::KNOWN),
        to in prop::sample::select(vec!["ben", "coordinator", "_all", "_any"]),
        case in prop::option::of(Just("c-1")),
        millis in 1_i64..4_000_000_000_000,
        priority in prop::sample::select(vec!["low", "normal", "high", "critical", "system_critical"]),
        (correlation, reply) in (prop::option::of("[a-z]{1,8}"), prop::option::of("[a-z ]{1,8}")),
        (round, requires_response) in (prop::option::of(1_u32..9), any::<bool>()),
        deadline in prop::option::of(0_i64..4_000_000_000_000),
        confidence in prop::option::of(0.0..=1.0_f64),
        version in prop::option::of(prop::sample::select(vec!["1.0", "1.7"])),
        payload in object(names, 4),
        (beside, about) in (object(&["x_one", "x_two"], 3), object(&["tags", "source", "as_stated"], 4)),
    ) -> Value {
        let mut message = json!({
            "message_id": "m-1", "timestamp": Timestamp::from_unix_millis(millis), "from_agent": "ann", "to_agent": to,
            "message_type": kind, "case_id": case, "correlation_id": correlation, "reply_to": reply, "round": round,
            "priority": priority, "requires_response": requires_response,
            "deadline": deadline.map(Timestamp::from_unix_millis), "payload": payload, "metadata": about,
        });
        // A request has an action. Who speaks another dialect may leave it out, which stands for one.
        if kind == MessageType::Request.as_str() {
            let payload = message["payload"].take();
            message["payload"] = if requires_response {
                json!({ "action": "ask", "parameters": payload })
            } else {
                json!({ "action": "say", "parameters": payload })
            };
        }
        message["metadata"]["confidence"] = confidence.into();
        message["metadata"]["version"] = version.into();
        message.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        message
    }
}

fn envelope(message: Value) -> (Envelope, Subject) {
    let envelope: Envelope = serde_json::from_slice(message.to_string().as_bytes()).unwrap();
    let subject = envelope.subject();
    (
        Envelope::decode(message.to_string().as_bytes(), &subject).unwrap(),
        subject,
    )
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(message in message(&FREE)) {
        let (envelope, subject) = envelope(message);
        for dialect in Dialect::ALL {
            let bytes = write(&envelope, dialect).unwrap();
            for declared in [Some(dialect), None] {
                let (read, spoken) = read(&bytes, declared, &subject).unwrap();
                prop_assert_eq!(canonical(&read), canonical(&envelope), "{}", dialect);
                // Without anything to carry, an exchange is an envelope.
                let alike = [Dialect::Concord, Dialect::Exchange];
                prop_assert!(spoken == dialect || (alike.contains(&spoken) && alike.contains(&dialect)));
            }
        }
    }

    #[test]
    fn what_is_taken_is_a_fault_or_comes_back(message in message(&TAKEN)) {
        let (envelope, subject) = envelope(message);
        for dialect in Dialect::ALL {
            match write(&envelope, dialect) {
                Ok(bytes) => {
                    let (read, _) = read(&bytes, Some(dialect), &subject).unwrap();
                    // That of an alert, which stands in the payload or in the metadata.
                    let is_moved = read.metadata.confidence != envelope.metadata.confidence
                        || canonical(&read)["payload"] != canonical(&envelope)["payload"];
                    if envelope.message_type == MessageType::Alert && is_moved {
                        let payload: Value = envelope.payload().unwrap();
                        prop_assert_eq!(read.metadata.confidence, payload["confidence"].as_f64());
                        continue;
                    }
                    prop_assert_eq!(canonical(&read), canonical(&envelope), "{}", dialect);
                }
                Err(fault) => prop_assert!(fault.pointer.starts_with("/payload/"), "{}", fault),
            }
        }
    }

    #[test]
    fn nothing_makes_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        let subject = subject("concord.v1.msg.c.ann.coordinator.finding");
        for declared in Dialect::ALL.into_iter().map(Some).chain([None]) {
            let _ = read(&bytes, declared, &subject);
            let _ = read(text.as_bytes(), declared, &subject);
        }
    }
}
