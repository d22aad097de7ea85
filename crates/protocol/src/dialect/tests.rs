mod examples;
mod faults;
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
