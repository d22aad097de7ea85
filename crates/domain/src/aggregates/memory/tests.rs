use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

mod reach;

fn put(id: &str, topic: &str, based_on: Option<u64>, value: Value) -> MemoryInput {
    let bounds = MemoryBounds {
        bytes_max: 200,
        versions_max: 5,
        topics_max: 2,
    };
    let entry = Remember {
        agent: None,
        topic: Token::new(topic).unwrap(),
        value,
        importance: 0.5,
        confidence: Some(0.8),
        evidence: vec!["10-K".into()],
        tags: Vec::new(),
        based_on,
    };
    MemoryInput::Put(Box::new(ReceivedMemory {
        heard: Heard {
            agent_id: agent("ann"),
            message_id: message(id),
            digest: crate::digest(format!("{entry:?}").as_bytes()),
        },
        case_id: None,
        entry,
        bounds,
        watched: Watched::default(),
        written_in: None,
    }))
}

fn hears(story: &mut Story<MemoryMachine>, id: &str, input: &MemoryInput) -> String {
    let now = story.records.len() as u64;
    story.hears(&said(id, now), input)
}

#[test]
fn the_table_of_memory() {
    let mut story = Story::<MemoryMachine>::of("ann");
    let stale = "refused: /payload/parameters/based_on";
    for (id, topic, based_on, value, expected) in [
        ("m-1", "margin", Some(1), json!(1), stale),
        ("m-2", "margin", None, json!(0.25), "put"),
        ("m-2", "margin", None, json!(0.25), "ignored: repetition"),
        ("m-2", "margin", None, json!(0.3), "refused: /message_id"),
        ("m-3", "margin", Some(0), json!(0.3), stale),
        ("m-4", "margin", Some(1), json!(0.3), "put"),
        (
            "m-5",
            "price",
            None,
            json!("v".repeat(300)),
            "refused: /payload/parameters/value",
        ),
        ("m-6", "price", None, json!(85), "put"),
        (
            "m-7",
            "rate",
            None,
            json!(1),
            "refused: /payload/parameters/topic",
        ),
        ("m-8", "price", None, Value::Null, "put"),
        ("m-9", "margin", None, json!(1), "put"),
        (
            "m-10",
            "margin",
            None,
            json!(2),
            "refused: /payload/parameters/value",
        ),
    ] {
        let input = put(id, topic, based_on, value);
        assert_eq!(hears(&mut story, id, &input), expected, "{id}");
    }
    let margin = &story.state().topics[&Token::fixed("margin")];
    assert_eq!((margin.listing.version, &margin.value), (3, &json!(1)));
}

#[test]
fn who_has_no_room_is_told_which_setting_gives_more() {
    let mut story = Story::<MemoryMachine>::of("ann");
    hears(&mut story, "m-1", &put("m-1", "a", None, json!(1)));
    let large = put("m-2", "a", None, json!("v".repeat(300)));
    let Decision::Reject(fault) = MemoryMachine::decide(story.state(), &said("m-2", 9), &large)
    else {
        panic!("it is refused");
    };
    assert_eq!(fault.code, ErrorCode::CapacityExceeded);
    assert!(fault.advice.contains("service.memory.bytes_max"), "{fault}");
}

/// What is written under a topic that a rule is about, at most so many alerts an hour.
fn watched(id: &str, value: Value, per_hour_max: u32) -> MemoryInput {
    let MemoryInput::Put(mut received) = put(id, "rate", None, value);
    received.bounds = MemoryBounds::default();
    let rule = json!({ "name": "moved", "topic": "rate", "event_type": "rate_move", "when": { "changed": {} } });
    received.watched = Watched {
        version: 1,
        rules: vec![serde_json::from_value(rule).unwrap()],
        per_hour_max,
        ..Watched::default()
    };
    MemoryInput::Put(received)
}

#[test]
fn a_version_that_fulfils_a_rule_says_so_and_a_flood_is_withheld() {
    let mut story = Story::<MemoryMachine>::of("ann");
    let mut told = Vec::new();
    for n in 0..8_u64 {
        let id = format!("m-{n}");
        // Twenty minutes pass between two versions.
        let context = said(&id, n * 1_200_000);
        story.hears(&context, &watched(&id, json!(n), 2));
        let again = story.hears(&context, &watched(&id, json!(n), 2));
        assert_eq!(again, "ignored: repetition");
        let MemoryEvent::Put(put) = &story.last().event;
        told.push(put.fired.iter().filter(|one| !one.withheld).count());
        assert_eq!(put.fired.len(), usize::from(n > 0));
    }
    assert_eq!(told, [0, 1, 1, 0, 1, 1, 0, 1]);
    let effects = MemoryMachine::effects(&story.records[1]);
    let [Effect::Respond { result, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(result["alerts"].as_array().map(Vec::len), Some(1));
    let effects = MemoryMachine::effects(&story.records[3]);
    let [Effect::Respond { result, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(result["withheld"], json!(["moved"]));
    let (again, differences) = replay::rebuild::<MemoryMachine>(&story.records);
    assert!(differences.is_empty());
    assert_eq!(&*again.state, story.state());
}

#[test]
fn what_belongs_to_a_case_raises_nothing() {
    let mut story = Story::<MemoryMachine>::of("ann");
    for n in 0..2 {
        let id = format!("m-{n}");
        let MemoryInput::Put(mut received) = watched(&id, json!(n), 2);
        received.case_id = Some(case_id());
        hears(&mut story, &id, &MemoryInput::Put(received));
    }
    let MemoryEvent::Put(put) = &story.last().event;
    assert_eq!((put.version, put.fired.len()), (2, 0));
}

proptest! {
    /// Whatever is written later, a snapshot is what stood at its sequence.
    #[test]
    fn a_snapshot_is_the_same_for_ever(
        writes in prop::collection::vec(("a|b", 0u64..4, prop::option::of(0u64..3)), 1..30),
    ) {
        let mut story = Story::<MemoryMachine>::of("ann");
        let mut seen = Vec::new();
        for (n, (topic, value, based_on)) in writes.into_iter().enumerate() {
            let id = format!("m-{n}");
            hears(&mut story, &id, &put(&id, &topic, based_on, json!(value)));
            let last = story.records.last().map_or(0, |record| record.sequence);
            let now: Vec<MemoryEntry> = story.state().topics.values().map(|entry| (**entry).clone()).collect();
            seen.push((Snapshot(last), now));
        }
        for (snapshot, then) in seen {
            let entries: Vec<MemoryEntry> = as_of(&story.records, snapshot).into_values().collect();
            prop_assert_eq!(entries, then);
        }
        let versions = u32::try_from(story.records.len()).unwrap();
        prop_assert_eq!(story.state().versions, versions);
        let (again, differences) = replay::rebuild::<MemoryMachine>(&story.records);
        prop_assert!(differences.is_empty());
        prop_assert_eq!(&*again.state, story.state());
    }
}
