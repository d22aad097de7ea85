//! Messages that are almost right: the accepted examples, under any subject, with something changed.

use std::path::Path;

use concord_wire::subject::{Lane, Service};
use concord_wire::{MessageType, Priority};
use serde_json::{Value, json};

use crate::random::Random;

/// Who sends them. No service is among them: the broker lets nobody else publish under its name.
const SENDERS: [&str; 6] = ["ada", "ben", "cleo", "dan", "olga", "mallory"];
/// Changes to one message at most.
const CHANGES_MAX: u64 = 3;

/// A message that is almost right.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Where it is published.
    pub lane: Lane,
    /// The tokens of its subject after the lane: case, sender, recipient, type.
    pub place: String,
    /// What is published.
    pub body: Vec<u8>,
}

/// Makes mutants without end, the same for the same seed.
#[derive(Debug)]
pub struct Mutants {
    random: Random,
    examples: Vec<Value>,
    /// Cases that messages are said to be in.
    cases: Vec<String>,
    prefix: String,
    made: u64,
    lanes: &'static [Lane],
}

impl Mutants {
    /// The mutants of a seed, some of them in these cases, on these lanes.
    pub fn new(seed: u64, cases: &[String], lanes: &'static [Lane]) -> Self {
        Self {
            random: Random::new(seed),
            examples: examples(),
            cases: cases.to_vec(),
            prefix: format!("mutant-{seed}"),
            made: 0,
            lanes,
        }
    }

    /// The next one.
    pub fn make(&mut self) -> Mutant {
        self.made += 1;
        let random = &mut self.random;
        let mut message = random.pick(&self.examples).clone();
        let lane = *random.pick(self.lanes);
        let from = *random.pick(&SENDERS);
        let to = recipient(random);
        message["from_agent"] = from.into();
        message["to_agent"] = to.into();
        // Few share their id with an earlier one.
        if !random.once_in(20) {
            message["message_id"] = format!("{}-{}", self.prefix, self.made).into();
        }
        if lane == Lane::Urgent {
            message["priority"] = json!(Priority::Critical);
        } else if message["priority"] != "low" {
            message["priority"] = json!(Priority::Normal);
        }
        if !self.cases.is_empty() && random.once_in(2) {
            message["case_id"] = random.pick(&self.cases).clone().into();
        }
        if random.once_in(4) {
            message["message_type"] = (*random.pick(MessageType::KNOWN)).into();
        }
        let kind = text(&message, "message_type")
            .unwrap_or("gossip")
            .to_owned();
        let case = text(&message, "case_id").unwrap_or("_").to_owned();
        if !random.once_in(3) {
            for _ in 0..random.between(1, CHANGES_MAX + 1) {
                change(random, &mut message);
            }
        }
        let mut body = message.to_string().into_bytes();
        if random.once_in(20) {
            spoil(random, &mut body);
        }
        let place = format!("{case}.{from}.{to}.{kind}");
        Mutant { lane, place, body }
    }
}

fn text<'a>(message: &'a Value, field: &str) -> Option<&'a str> {
    message.get(field).and_then(Value::as_str)
}

/// Mostly a service.
fn recipient(random: &mut Random) -> &'static str {
    match random.between(0, 10) {
        0 => "any",
        1 => "all",
        2 => random.pick::<&str>(&SENDERS),
        _ => random.pick(Service::ALL).as_str(),
    }
}

/// Changes one place of a message.
fn change(random: &mut Random, message: &mut Value) {
    let mut places = Vec::new();
    collect(message, String::new(), &mut places);
    let place = random.pick(&places).clone();
    let (parent, key) = place.rsplit_once('/').unwrap_or(("", ""));
    let Some(parent) = message.pointer_mut(parent) else {
        return;
    };
    let value = anything(random);
    match parent {
        Value::Object(fields) => {
            if random.once_in(3) {
                fields.remove(key);
            } else if random.once_in(6) {
                fields.insert(format!("{key}_"), value);
            } else {
                fields.insert(key.to_owned(), value);
            }
        }
        Value::Array(items) => {
            let place = random.below(items.len().max(1));
            items.insert(place.min(items.len()), value);
        }
        _ => {}
    }
}

/// The pointers to all places below a value.
fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    let below = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places.push(below(key));
                collect(value, below(key), places);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                places.push(below(&place.to_string()));
                collect(value, below(&place.to_string()), places);
            }
        }
        _ => {}
    }
}

/// A value that may stand where none of its kind is expected.
fn anything(random: &mut Random) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("ada"),
        json!("coordinator"),
        json!("2026-11-21T20:15:18.000Z"),
        json!("2027-01-16T08:00:00.000Z"),
        json!("a b\n\u{1b}[2J\u{202e}\u{200b}\u{0}"),
        json!("x".repeat(10_000)),
        json!("concord.v1.>"),
        json!([]),
        json!({}),
        json!(["ada", "ben", 7]),
        json!({ "number": 1 }),
    ];
    random.pick(&values).clone()
}

/// Cuts a body, or changes one byte of it.
fn spoil(random: &mut Random, body: &mut Vec<u8>) {
    let place = random.below(body.len());
    if random.once_in(2) {
        body.truncate(place);
    } else {
        body[place] = random.next() as u8;
    }
}

/// The accepted examples that are messages.
fn examples() -> Vec<Value> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto-schemas/examples/accepted");
    let files = std::fs::read_dir(folder).expect("the examples are there");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    // The order of a folder differs from machine to machine.
    paths.sort();
    let read = paths.iter().filter_map(|path| {
        let bytes = std::fs::read(path).expect("an example");
        serde_json::from_slice::<Value>(&bytes).ok()
    });
    read.filter(|example| example["message_type"].is_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mutants() {
        let made = || {
            let mut mutants = Mutants::new(7, &["c-1".to_owned()], &[Lane::Normal]);
            (0..100)
                .map(|_| mutants.make())
                .map(|mutant| (mutant.place, mutant.body))
                .collect::<Vec<_>>()
        };
        assert_eq!(made(), made());
    }
}
