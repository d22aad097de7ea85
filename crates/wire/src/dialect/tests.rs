mod examples;
mod faults;
mod free_metadata;
mod properties;

use serde_json::Value;

use super::*;
use crate::subject::SubjectSpace;

fn subject(text: &str) -> Subject {
    SubjectSpace::default().parse(text).unwrap()
}

fn canonical(envelope: &Envelope) -> Value {
    serde_json::from_slice(&serde_json::to_vec(envelope).unwrap()).unwrap()
}

#[test]
fn each_dialect_is_read_by_the_name_it_is_written_with() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
        assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.as_str());
    }
    assert_eq!(Dialect::parse("latin"), None);
}

#[test]
fn a_field_named_like_what_is_carried_is_not_taken_for_it() {
    for value in [
        Value::Null,
        serde_json::json!([false, [""]]),
        serde_json::json!({ "round": 7 }),
    ] {
        let message = serde_json::json!({
            "message_id": "m-1", "timestamp": "1970-01-01T00:00:00.001Z", "from_agent": "ann", "to_agent": "ben",
            "message_type": "finding", "payload": { "concord": value },
        });
        let subject = subject("concord.v1.msg._.ann.ben.finding");
        let envelope = Envelope::decode(message.to_string().as_bytes(), &subject).unwrap();
        for dialect in Dialect::ALL {
            match write(&envelope, dialect) {
                Ok(bytes) => {
                    let (read, _) = read(&bytes, Some(dialect), &subject).unwrap();
                    assert_eq!(canonical(&read), canonical(&envelope), "{dialect}");
                }
                Err(fault) => assert_eq!(fault.pointer, "/payload/concord", "{dialect}"),
            }
        }
    }
}
