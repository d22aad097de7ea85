//! Whom an entry of a case reaches.

use concord_wire::payload::{Adapted, INSIGHT_VALUE_BYTES_MAX, Reach};
use concord_wire::policy::ImportancePolicy;

use super::*;

/// What ann writes into a case of ann and ben, which olga has opened.
fn written(id: &str, importance: f64, debate_is_open: bool) -> MemoryInput {
    let MemoryInput::Put(mut received) = put(id, "margin", None, json!(0.25));
    received.entry.importance = importance;
    received.case_id = Some(case_id());
    received.bounds = MemoryBounds::default();
    received.written_in = Some(WrittenIn {
        policy: ImportancePolicy {
            filtered: true,
            ..ImportancePolicy::default()
        },
        everyone: ["ann", "ben", "olga"].map(agent).to_vec(),
        debate_is_open,
        regime_changed: false,
    });
    MemoryInput::Put(received)
}

/// The reach of what was written last, and who is told of it.
fn last(story: &Story<MemoryMachine>) -> (MemoryPut, Vec<String>) {
    let MemoryEvent::Put(put) = &story.last().event;
    let messages = crate::effect::messages::<MemoryMachine>(story.last()).unwrap();
    let told = messages
        .iter()
        .filter(|message| message.message_type.as_str() == "notification");
    let told = told.map(|message| message.to_agent.to_string()).collect();
    (put.clone(), told)
}

#[test]
fn importance_says_whom_an_entry_reaches() {
    let mut story = Story::<MemoryMachine>::of("ann");
    let everyone: &[&str] = &["ben", "olga"];
    for (importance, debate_is_open, reach, told) in [
        (0.81, false, Reach::Broadcast, everyone),
        (0.8, false, Reach::Held, &[]),
        (0.41, false, Reach::Held, &[]),
        (0.4, false, Reach::Kept, &[]),
        (0.0, false, Reach::Kept, &[]),
        (0.71, true, Reach::Broadcast, everyone),
        (0.7, true, Reach::Held, &[]),
        (0.31, true, Reach::Held, &[]),
        (0.3, true, Reach::Kept, &[]),
    ] {
        let id = format!("m-{}", importance * 100.0).replace('.', "_");
        hears(&mut story, &id, &written(&id, importance, debate_is_open));
        let (put, all) = last(&story);
        let stored = put.reach.expect("a reach");
        assert_eq!(
            (stored.reach, all),
            (reach, told.iter().map(|name| (*name).to_owned()).collect()),
            "{importance}"
        );
        let adapted: &[Adapted] = if debate_is_open {
            &[Adapted::DebateOpen]
        } else {
            &[]
        };
        assert_eq!(stored.adapted, adapted);
    }
}

#[test]
fn a_change_of_regime_lowers_the_thresholds_as_an_open_debate_does() {
    for (importance, debate_is_open, reach) in [
        (0.71, false, Reach::Broadcast),
        (0.7, false, Reach::Held),
        (0.61, true, Reach::Broadcast),
        (0.2, true, Reach::Kept),
    ] {
        let mut story = Story::<MemoryMachine>::of("ann");
        let MemoryInput::Put(mut received) = written("m-1", importance, debate_is_open);
        if let Some(written_in) = &mut received.written_in {
            written_in.regime_changed = true;
        }
        hears(&mut story, "m-1", &MemoryInput::Put(received));
        let stored = last(&story).0.reach.unwrap();
        assert_eq!(stored.reach, reach, "{importance}");
        assert!(stored.adapted.contains(&Adapted::RegimeChanged));
    }
}

#[test]
fn whoever_says_everything_matters_is_told_less_often() {
    let mut story = Story::<MemoryMachine>::of("ann");
    let mut reaches = Vec::new();
    for n in 0..10 {
        let id = format!("m-{n}");
        hears(&mut story, &id, &written(&id, 0.85, false));
        reaches.push(last(&story).0.reach.unwrap());
    }
    let told = reaches
        .iter()
        .take_while(|one| one.reach == Reach::Broadcast);
    assert_eq!(told.count(), 8);
    assert_eq!(
        (reaches[8].broadcast_above, &*reaches[8].adapted),
        (0.9, &[Adapted::OftenTold][..])
    );
    // Something else is still heard.
    hears(&mut story, "m-99", &written("m-99", 0.95, false));
    assert_eq!(last(&story).0.reach.unwrap().reach, Reach::Broadcast);
    let (_, differences) = replay::rebuild::<MemoryMachine>(&story.records);
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn outside_cases_and_where_nothing_is_filtered_nobody_is_told() {
    let mut story = Story::<MemoryMachine>::of("ann");
    hears(&mut story, "m-1", &put("m-1", "margin", None, json!(1)));
    let (stored, told) = last(&story);
    assert_eq!((stored.reach, told.len()), (None, 0));
    let text = serde_json::to_string(&story.last().event).unwrap();
    assert!(!text.contains("reach") && !text.contains("told"), "{text}");
}

#[test]
fn a_large_value_is_read_by_asking() {
    let mut story = Story::<MemoryMachine>::of("ann");
    for (length, is_left_out) in [(10, false), (INSIGHT_VALUE_BYTES_MAX, true)] {
        let id = format!("m-{length}");
        let MemoryInput::Put(mut received) = written(&id, 0.9, false);
        received.entry.value = json!("v".repeat(length));
        hears(&mut story, &id, &MemoryInput::Put(received));
        let insight = insight_of(&entry_of(story.last()));
        assert_eq!(
            (insight.left_out, insight.value.is_null()),
            (is_left_out, is_left_out)
        );
    }
}

#[test]
fn a_reach_that_does_not_follow_is_found() {
    let mut story = Story::<MemoryMachine>::of("ann");
    hears(&mut story, "m-1", &written("m-1", 0.5, false));
    let mut record = story.last().clone();
    let MemoryEvent::Put(put) = &mut record.event;
    put.told = vec![agent("ben")];
    put.entry.importance = 0.9;
    let found = MemoryMachine::recount(story.state(), &record);
    assert_eq!(found.len(), 2, "{found:?}");
}
