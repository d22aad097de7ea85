//! Metadata that may say anything.

use serde_json::json;

use super::*;

const SUBJECT: &str = "concord.v1.msg._.ann.ben.status";

fn message(metadata: &Value) -> String {
    json!({
        "id": "m-1", "sender_id": "ann", "receiver_id": "ben", "message_type": "STATUS", "content": { "status": "busy" },
        "metadata": metadata,
    })
    .to_string()
}

#[test]
fn what_fits_no_field_is_kept_and_written_again() {
    for stated in [
        json!({ "version": "2.3.1" }),
        json!({ "version": 2 }),
        json!({ "confidence": "high" }),
        json!({ "confidence": { "low": 0.2 }, "version": "v1" }),
        json!({ "processing_time_ms": "12 ms", "memory_snapshot": [1] }),
    ] {
        let mut metadata = stated.clone();
        metadata["source"] = "feed".into();
        let subject = subject(SUBJECT);
        let (envelope, _) = read(message(&metadata).as_bytes(), None, &subject).unwrap();
        let kept = json!({ "source": "feed", "as_stated": stated });
        assert_eq!(canonical(&envelope)["metadata"], kept);

        // Others read it, and whoever speaks the dialect is given it as it was.
        let bytes = serde_json::to_vec(&envelope).unwrap();
        Envelope::decode(&bytes, &subject).unwrap();
        let written = write(&envelope, Dialect::Collaboration).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["metadata"], metadata);
    }
}

#[test]
fn what_fits_is_a_field() {
    let metadata = json!({ "version": "1.2", "confidence": 0.7, "processing_time_ms": 12.5 });
    for dialect in [Dialect::Collaboration, Dialect::Exchange, Dialect::Concord] {
        let mut message: Value = serde_json::from_str(&message(&metadata)).unwrap();
        if dialect != Dialect::Collaboration {
            message = json!({
                "message_id": "m-1", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "ann", "to_agent": "ben",
                "message_type": "status", "payload": {}, "metadata": metadata,
            });
        }
        let bytes = message.to_string();
        let (envelope, _) = read(bytes.as_bytes(), Some(dialect), &subject(SUBJECT)).unwrap();
        let read = json!({ "version": "1.2", "confidence": 0.7, "processing_time_ms": 13 });
        assert_eq!(canonical(&envelope)["metadata"], read, "{dialect}");
    }
}

#[test]
fn what_stands_there_otherwise_is_left_alone() {
    for as_stated in [
        json!({}),
        json!(7),
        json!({ "version": "1.0" }),
        json!({ "tags": 1 }),
    ] {
        let metadata = json!({ "as_stated": as_stated });
        let (envelope, _) = read(message(&metadata).as_bytes(), None, &subject(SUBJECT)).unwrap();
        assert_eq!(canonical(&envelope)["metadata"], metadata);
        let written = write(&envelope, Dialect::Collaboration).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["metadata"], metadata);
    }
}
