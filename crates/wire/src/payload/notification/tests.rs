use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::MessageType;
use crate::envelope::Envelope;
use crate::id::Recipient;
use crate::timestamp::Timestamp;

fn ruling_due() -> RulingDue {
    RulingDue {
        debate_id: "d-1".parse().unwrap(),
        topic: "Risk score spread: 35-80".into(),
        percent: 50,
        due: Timestamp::parse("2026-11-21T22:00:00.000Z").unwrap(),
    }
}

fn answer() -> Envelope {
    Envelope::new(
        "m-1".parse().unwrap(),
        Timestamp::parse("2026-11-21T20:15:00.000Z").unwrap(),
        "bob".parse().unwrap(),
        Recipient::All,
        MessageType::Response,
        serde_json::value::to_raw_value(
            &json!({ "status": "success", "result": { "z": 1, "a": 0.1 } }),
        )
        .unwrap(),
    )
}

#[test]
fn every_event_has_a_name_of_its_own() {
    let names: BTreeSet<_> = NotificationData::ALL
        .iter()
        .map(|info| info.event)
        .collect();
    assert_eq!(names.len(), NotificationData::ALL.len());
}

#[test]
fn the_keys_of_the_data_are_written_in_alphabetical_order() {
    let notification = Notification::new(&ruling_due().into()).unwrap();
    assert_eq!(
        serde_json::to_string(&notification).unwrap(),
        r#"{"event":"ruling_due","data":{"debate_id":"d-1","due":"2026-11-21T22:00:00.000Z","percent":50,"topic":"Risk score spread: 35-80"},"severity":"info"}"#
    );
}

#[test]
fn a_late_answer_is_repeated_as_it_would_have_been_sent() {
    let data = AnsweredLate::new(&answer()).unwrap();
    let notification = Notification::new(&data.into()).unwrap();
    assert_eq!(notification.event, "answered_late");
    assert_eq!(
        notification.data.to_string(),
        r#"{"message":{"from_agent":"bob","message_id":"m-1","message_type":"response","metadata":{"version":"1.0"},"payload":{"result":{"a":0.1,"z":1},"status":"success"},"priority":"normal","requires_response":false,"timestamp":"2026-11-21T20:15:00.000Z","to_agent":"_all"}}"#
    );
    assert_eq!(
        notification.data,
        json!({ "message": answer() }),
        "nothing of the envelope is left out"
    );
}

#[test]
fn a_notification_is_read_as_the_type_of_its_event() {
    let data = NotificationData::from(ruling_due());
    let notification = Notification::new(&data).unwrap();
    assert_eq!(notification.typed().unwrap().unwrap(), data);

    let broken = Notification {
        data: json!({ "debate_id": "d-1", "topic": "x", "percent": "half", "due": "2026-11-21T22:00:00Z" }),
        ..notification
    };
    let fault = broken.typed().unwrap().unwrap_err();
    assert_eq!(fault.pointer, "/payload/data/percent");

    let other = Notification {
        event: "lunch".into(),
        ..broken
    };
    assert!(other.typed().is_none());
}
