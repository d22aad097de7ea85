//! Writes messages for programs and servers, in their dialects and with the task that an agent without memory must know.

use concord_wire::payload::Task;
use concord_wire::{Dialect, Envelope, Fault, dialect};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

/// A question with the task of its case in the payload, unless it has one.
pub(crate) fn with_task(
    message: &Envelope,
    task: Option<&Task>,
) -> Result<Envelope, serde_json::Error> {
    let mut message = message.clone();
    if let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(message.payload.get()) {
        fields.entry("task").or_insert(serde_json::to_value(task)?);
        message.payload = to_raw_value(&fields)?;
    }
    Ok(message)
}

/// Writes the message as one line of a dialect. Fails with the field that the dialect cannot express. The earlier messages and
/// the reason why the message wakes the agent are the fields `context`, `reason` and `score`, which every dialect keeps.
pub(crate) fn write_line(message: &Envelope, dialect_of_agent: Dialect) -> Result<Vec<u8>, Fault> {
    let mut line = dialect::write(message, dialect_of_agent)?;
    // Line breaks inside texts are escaped; what is left of them is space between tokens, as somebody had written it.
    line.iter_mut()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .for_each(|byte| *byte = b' ');
    debug_assert!(!line.contains(&b'\n'), "a message has more than one line");
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn question() -> Envelope {
        let text = r#"{ "message_id": "m-1", "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "ann", "to_agent": "ben",
            "message_type": "question", "case_id": "c-1", "payload": {
                "topic": "a\nb", "n": 1.00000000000000000001
            }, "context": [ {
                "text": "Hello." } ] }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_message_is_one_line_in_every_dialect_and_comes_with_what_was_said_before() {
        for spoken in Dialect::ALL {
            let line = write_line(&question(), spoken).unwrap();
            assert!(!line.contains(&b'\n'), "{spoken}");
            let given: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(given["context"], json!([{ "text": "Hello." }]), "{spoken}");
            let (read, _) = dialect::read(&line, Some(spoken), &question().subject()).unwrap();
            assert_eq!(
                read.payload::<Value>().unwrap()["topic"],
                "a\nb",
                "{spoken}"
            );
        }
    }

    #[test]
    fn a_question_has_the_task_of_its_case_once() {
        let with = with_task(&question(), None).unwrap();
        assert_eq!(with.payload::<Value>().unwrap()["task"], Value::Null);
        let own = Envelope {
            payload: to_raw_value(&json!({ "task": 7 })).unwrap(),
            ..question()
        };
        assert_eq!(
            with_task(&own, None).unwrap().payload::<Value>().unwrap()["task"],
            7
        );
        let words = Envelope {
            payload: RawValue::from_string("7".into()).unwrap(),
            ..question()
        };
        assert_eq!(with_task(&words, None).unwrap().payload.get(), "7");
    }
}
