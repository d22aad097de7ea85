//! The conformance cases, as everybody but the agent under test sees them.

use std::path::PathBuf;

use concord_wire::subject::SubjectSpace;
use concord_wire::{Envelope, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::Stage;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conformance {
    #[expect(dead_code, reason = "for readers")]
    about: String,
    pub(crate) agent: String,
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[expect(dead_code, reason = "for readers")]
    why: String,
    hear: Said,
    pub(crate) call: String,
    pub(crate) arguments: Value,
    pub(crate) say: Vec<Said>,
    pub(crate) answer: Option<Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) subject: String,
    pub(crate) message: Value,
    /// How it is compressed; not at all when absent.
    pub(crate) encoding: Option<String>,
    /// Whether its payload travels by the object store.
    #[serde(default)]
    pub(crate) stored: bool,
}

pub(crate) fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients/conformance.json")
}

pub(crate) fn read() -> Conformance {
    let mut file = serde_json::from_slice(&std::fs::read(path()).expect("the file")).expect("JSON");
    repeat(&mut file);
    serde_json::from_value(file).expect("conformance cases")
}

/// Writes out the texts that are too long to be in the file: `{"repeat": TEXT, "times": N}`.
fn repeat(value: &mut Value) {
    match value {
        Value::Object(fields) => match (fields.get("repeat"), fields.get("times")) {
            (Some(text), Some(times)) => {
                let times = usize::try_from(times.as_u64().expect("a number")).expect("a number");
                *value = text.as_str().expect("a text").repeat(times).into();
            }
            _ => fields.values_mut().for_each(repeat),
        },
        Value::Array(items) => items.iter_mut().for_each(repeat),
        _ => {}
    }
}

/// Plays every case with the agent that listens.
pub(crate) async fn play(stage: &mut Stage) {
    for case in read().cases {
        let metadata = json!({ "conformance": case.name });
        stage.say(&case.hear, metadata).await;
        for expected in &case.say {
            let (subject, message) = stage.next(&case.name).await;
            let whole = stage.whole(&message).await;
            assert_eq!(
                whole.is_some(),
                expected.stored,
                "{}: by the object store",
                case.name
            );
            is_said(
                &case.name,
                expected,
                &subject,
                (&message, whole.as_ref().unwrap_or(&message)),
            );
            assert_eq!(stage.encoding, expected.encoding, "{}", case.name);
            if let Some(answer) = case
                .answer
                .as_ref()
                .filter(|_| message["message_type"] == "request")
            {
                stage.answer(&message, answer).await;
            }
        }
    }
}

/// Compares a message, given as it was published and with its payload.
fn is_said(name: &str, expected: &Said, subject: &str, (message, whole): (&Value, &Value)) {
    assert_eq!(subject, expected.subject, "{name}: {message:#}");
    let parsed = SubjectSpace::default().parse(subject).expect("a subject");
    // The services would take it.
    let decoded = Envelope::decode(message.to_string().as_bytes(), &parsed);
    decoded.unwrap_or_else(|fault| panic!("{name}: {fault}: {message:#}"));
    assert_eq!(message["metadata"]["version"], "1.0", "{name}");
    for (field, value) in expected.message.as_object().expect("an object") {
        assert!(
            holds(&whole[field], value),
            "{name}: {field} is not as expected in {message:#}"
        );
    }
    // What is not expected has its usual value.
    for (field, usual) in [
        ("case_id", Value::Null),
        ("correlation_id", Value::Null),
        ("reply_to", Value::Null),
        ("round", Value::Null),
        ("deadline", Value::Null),
        ("priority", "normal".into()),
        ("requires_response", false.into()),
    ] {
        let said = message
            .get(field)
            .filter(|value| !value.is_null())
            .unwrap_or(&usual);
        assert!(
            expected.message.get(field).is_some() || *said == usual,
            "{name}: {field} is {said}"
        );
    }
    assert!(
        MessageId::new(message["message_id"].as_str().unwrap_or_default()).is_ok(),
        "{name}"
    );
}

/// Whether a value has everything expected; what else is in it may only be empty.
fn holds(said: &Value, expected: &Value) -> bool {
    match (said, expected) {
        (Value::Object(said), Value::Object(expected)) => {
            let all = expected
                .iter()
                .all(|(name, value)| said.get(name).is_some_and(|said| holds(said, value)));
            let others = said
                .iter()
                .filter(|(name, _)| !expected.contains_key(*name));
            // An error's code says what it is; its words are the library's own.
            let own = [
                "version",
                "details",
                "error_message",
                "recovery_suggestions",
            ];
            all && others
                .into_iter()
                .all(|(name, value)| own.contains(&name.as_str()) || is_empty(value))
        }
        (Value::Number(said), Value::Number(expected)) => said.as_f64() == expected.as_f64(),
        (said, expected) => said == expected,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
