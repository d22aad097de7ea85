//! The conformance cases: what an agent is sent, and what it must send.

use std::collections::BTreeSet;
use std::path::PathBuf;

use concord_wire::subject::SubjectSpace;
use concord_wire::{Envelope, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clients::stage::Stage;

/// The contents of `clients/conformance.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conformance {
    #[expect(dead_code, reason = "for readers")]
    about: String,
    pub(crate) agent: String,
    pub(crate) cases: Vec<Case>,
}

/// One case: a message to the agent, and the messages that follow from the call that its handler makes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[expect(dead_code, reason = "for readers")]
    why: String,
    #[serde(rename = "hear")]
    input: WireMessage,
    pub(crate) call: String,
    pub(crate) arguments: Value,
    #[serde(rename = "say")]
    pub(crate) output: Vec<WireMessage>,
    pub(crate) answer: Option<Value>,
}

/// A message as it travels.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireMessage {
    pub(crate) subject: String,
    pub(crate) message: Value,
    /// The encoding in which it is compressed; not compressed when absent.
    pub(crate) encoding: Option<String>,
    /// Whether its payload travels by the object store.
    #[serde(default)]
    pub(crate) stored: bool,
}

/// The path of the file.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../clients/conformance.json")
}

/// Reads the file.
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
        stage.send(&case.input, metadata).await;
        let mut ids = BTreeSet::new();
        for expected in &case.output {
            let (subject, message) = stage.next(&case.name).await;
            let is_new = ids.insert(message["message_id"].to_string());
            assert!(is_new, "{}: the broker would drop {message:#}", case.name);
            let whole = stage.whole(&message).await;
            assert_eq!(
                whole.is_some(),
                expected.stored,
                "{}: by the object store",
                case.name
            );
            check_message(
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

/// Compares a message with the expected one. It is given as it was published, and with its whole payload.
fn check_message(
    name: &str,
    expected: &WireMessage,
    subject: &str,
    (message, whole): (&Value, &Value),
) {
    assert_eq!(subject, expected.subject, "{name}: {message:#}");
    let parsed = SubjectSpace::default().parse(subject).expect("a subject");
    // The services accept it.
    let decoded = Envelope::decode(message.to_string().as_bytes(), &parsed);
    decoded.unwrap_or_else(|fault| panic!("{name}: {fault}: {message:#}"));
    assert_eq!(message["metadata"]["version"], "1.0", "{name}");
    for (field, value) in expected.message.as_object().expect("an object") {
        assert!(
            holds(&whole[field], value),
            "{name}: {field} is not as expected in {message:#}"
        );
    }
    // Fields that the case does not name have their usual values.
    for (field, usual) in [
        ("case_id", Value::Null),
        ("correlation_id", Value::Null),
        ("reply_to", Value::Null),
        ("round", Value::Null),
        ("deadline", Value::Null),
        ("priority", "normal".into()),
        ("requires_response", false.into()),
    ] {
        let value = message
            .get(field)
            .filter(|value| !value.is_null())
            .unwrap_or(&usual);
        assert!(
            expected.message.get(field).is_some() || *value == usual,
            "{name}: {field} is {value}"
        );
    }
    assert!(
        MessageId::new(message["message_id"].as_str().unwrap_or_default()).is_ok(),
        "{name}"
    );
}

/// Whether a value has everything that is expected; anything else in it must be empty.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let all = expected
                .iter()
                .all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)));
            let others = found
                .iter()
                .filter(|(name, _)| !expected.contains_key(*name));
            // The code of an error is expected; its texts are the library's own.
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
        (Value::Array(found), Value::Array(expected)) => {
            let mut pairs = found.iter().zip(expected);
            found.len() == expected.len() && pairs.all(|(found, expected)| holds(found, expected))
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        (found, expected) => found == expected,
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
