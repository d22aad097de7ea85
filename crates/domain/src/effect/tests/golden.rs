//! The messages that follow from an event, byte for byte as version ff2e97e sent them.
//!
//! `golden.txt` holds stored events (`> `), each followed by the messages that were published because of it (`< `).

use concord_events::{Aggregate, StoredEvent};

use crate::{Machine, MachineVisitor, visit_machine};

const GOLDEN: &str = include_str!("golden.txt");

/// The messages that follow from one stored event, as bytes.
struct Messages<'a>(&'a str);

impl MachineVisitor for Messages<'_> {
    type Output = Vec<String>;

    fn visit<M: Machine>(self) -> Vec<String> {
        let stored = StoredEvent::<M::Event>::decode(self.0.as_bytes(), 7).unwrap();
        let messages = crate::effect::messages::<M>(&stored).unwrap();
        let written = messages.iter().map(serde_json::to_string);
        written.collect::<Result<_, _>>().unwrap()
    }
}

fn messages_of(event: &str) -> Vec<String> {
    let parsed: serde_json::Value = serde_json::from_str(event).unwrap();
    let aggregate = Aggregate::parse(parsed["aggregate"].as_str().unwrap()).unwrap();
    visit_machine(aggregate, Messages(event))
}

#[test]
fn the_messages_of_each_event_are_what_they_were() {
    let mut made = String::new();
    for event in GOLDEN.lines().filter_map(|line| line.strip_prefix("> ")) {
        made.push_str(&format!("> {event}\n"));
        for message in messages_of(event) {
            made.push_str(&format!("< {message}\n"));
        }
    }
    for (before, now) in GOLDEN.lines().zip(made.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(made.lines().count(), GOLDEN.lines().count());
}
