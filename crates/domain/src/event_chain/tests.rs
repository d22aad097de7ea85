use std::collections::BTreeMap;

use concord_events::Aggregate;
use concord_events::{
    DeadlineElapsed, DeadlineEvent, EARLIER_MAX, EventMeta, FiredBy, Origin, event_id,
};
use proptest::prelude::*;

use super::*;
use crate::aggregates::deadline::{DeadlineMachine, Fire};
use crate::assurance::replay;
use crate::fixtures::*;
use crate::machine::Versioned;

type Stored = BTreeMap<u64, StoredEvent<DeadlineEvent>>;

fn fact(sequence: u64, earlier: Vec<u64>) -> StoredEvent<DeadlineEvent> {
    let (id, cause) = (token("x"), message(&format!("m-{sequence}")));
    let event = DeadlineEvent::of(DeadlineElapsed {
        aggregate: Aggregate::Case,
        id: id.clone(),
        name: token("case"),
        due: after(sequence),
        fired_by: FiredBy::Scheduler,
        lateness_ms: 0,
    });
    let meta = EventMeta {
        event_id: event_id(Aggregate::Deadline, &id, Origin::Message, &cause),
        id,
        at: after(sequence),
        cause,
        deadlines: vec![],
        opened: vec![],
        closed: vec![],
        earlier,
        memory_snapshot: None,
        state: None,
    };
    StoredEvent {
        meta,
        sequence,
        event,
    }
}

/// An aggregate whose facts stand at these distances from each other and name at most `most`
/// predecessors.
fn life(distances: &[u64], most: usize) -> Stored {
    let (mut earlier, mut sequence) = (Vec::new(), 0);
    let append = |distance: &u64| {
        sequence += distance;
        let record = fact(sequence, earlier.clone());
        remember(&mut earlier, sequence, most);
        (sequence, record)
    };
    distances.iter().map(append).collect()
}

/// Follows the chain from the last fact: what was found, and what was fetched at once each time.
fn follow(stored: &Stored, known: u64) -> (Vec<u64>, Vec<Vec<u64>>) {
    let (_, last) = stored.last_key_value().unwrap();
    let mut chain = Chain::new(last.clone(), known, None);
    let mut fetched = Vec::new();
    loop {
        let missing = chain.missing();
        if missing.is_empty() {
            return (
                chain
                    .into_records()
                    .iter()
                    .map(|record| record.sequence)
                    .collect(),
                fetched,
            );
        }
        assert!(fetched.len() < 10_000, "there is an end to it");
        chain.found(
            missing
                .iter()
                .map(|sequence| stored[sequence].clone())
                .collect(),
        );
        fetched.push(missing);
    }
}

/// Up to three times as many facts as one names, and how many one names.
fn lives() -> impl Strategy<Value = (Vec<u64>, usize)> {
    (1usize..6).prop_flat_map(|most| {
        (
            proptest::collection::vec(1u64..5, 1..=3 * most + 1),
            Just(most),
        )
    })
}

proptest! {
    #[test]
    fn every_fact_is_found_from_the_last_one_and_nothing_that_is_known(
        (distances, most) in lives(), known in any::<u64>(),
    ) {
        let stored = life(&distances, most);
        let known = known % *stored.last_key_value().unwrap().0;
        let (found, fetched) = follow(&stored, known);
        let expected: Vec<u64> = stored.keys().copied().filter(|sequence| *sequence > known).collect();
        prop_assert_eq!(&found, &expected);
        let mut all: Vec<u64> = fetched.concat();
        all.sort_unstable();
        prop_assert_eq!(&all[..], &expected[..expected.len() - 1], "each is fetched once, the last not at all");
        prop_assert_eq!(fetched.len(), (expected.len() - 1).div_ceil(most), "as many at once as a fact names");
        prop_assert!(fetched.iter().all(|at_once| at_once.len() <= most));
    }

    #[test]
    fn every_fact_names_its_last_predecessors((distances, most) in lives()) {
        let stored = life(&distances, most);
        let sequences: Vec<u64> = stored.keys().copied().collect();
        for (place, record) in stored.values().enumerate() {
            prop_assert_eq!(&record.meta.earlier, &sequences[place.saturating_sub(most)..place]);
        }
    }

    #[test]
    fn facts_that_name_all_their_predecessors_are_found_at_once(distances in proptest::collection::vec(1u64..5, 2..40)) {
        let stored = life(&distances, usize::MAX);
        let (found, fetched) = follow(&stored, 0);
        prop_assert_eq!(found, stored.keys().copied().collect::<Vec<_>>());
        prop_assert_eq!(fetched.len(), 1);
    }

    #[test]
    fn whatever_facts_name_there_is_an_end(named in proptest::collection::vec(proptest::collection::vec(1u64..9, 0..4), 8)) {
        let facts = named.into_iter().zip(1..).map(|(earlier, sequence)| (sequence, fact(sequence, earlier)));
        follow(&facts.collect(), 0);
    }
}

proptest! {
    // One case plays hundreds of steps.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn an_aggregate_of_any_length_names_true_predecessors(
        length in prop_oneof![
            0..=3 * EARLIER_MAX,
            proptest::sample::select(vec![EARLIER_MAX - 1, EARLIER_MAX, EARLIER_MAX + 1, 2 * EARLIER_MAX + 1]),
        ],
    ) {
        let mut story = Story::<DeadlineMachine>::of("x");
        for due in 0..length as u64 {
            let deadline = concord_events::Deadline { name: token("case"), due: after(due) };
            let fire =
                Fire { aggregate: Aggregate::Case, id: token("c-1"), deadline, fired_by: FiredBy::Scheduler };
            prop_assert_eq!(story.hears(&said(&format!("m-{due}"), due), &fire), "case_elapsed");
        }
        prop_assert_eq!(story.versioned.sequences.len(), length.min(EARLIER_MAX));
        prop_assert_eq!(replay::rebuild::<DeadlineMachine>(&story.records).1, vec![]);
        let stored: Stored = story.records.iter().map(|record| (record.sequence, record.clone())).collect();
        let Some(last) = story.records.last() else { return Ok(()) };
        prop_assert!(last.encode().unwrap().len() < 8 * 1024, "a fact does not grow with the age of its aggregate");
        let (found, fetched) = follow(&stored, 0);
        let mut rebuilt = Versioned::<DeadlineMachine>::default();
        found.iter().for_each(|sequence| rebuilt.apply(stored[sequence].clone()));
        prop_assert_eq!(rebuilt.state, story.versioned.state);
        prop_assert_eq!(rebuilt.sequences, story.versioned.sequences);
        prop_assert_eq!(fetched.len(), (length - 1).div_ceil(EARLIER_MAX));
    }
}

#[test]
fn a_false_predecessor_is_noticed_in_an_aggregate_of_any_length() {
    let stored = life(&[2; 2 * EARLIER_MAX], EARLIER_MAX);
    let untouched: Vec<_> = stored.values().cloned().collect();
    assert_eq!(replay::rebuild::<DeadlineMachine>(&untouched).1, []);
    let change = |change: &dyn Fn(&mut Vec<u64>)| {
        let mut records = untouched.clone();
        change(&mut records[EARLIER_MAX + 3].meta.earlier);
        let differences = replay::rebuild::<DeadlineMachine>(&records).1;
        assert_eq!(differences.len(), 1, "{differences:?}");
        differences[0].what.clone()
    };
    let oldest = untouched[EARLIER_MAX + 3].meta.earlier[0];
    for (what, changed) in [
        (
            format!("not [{oldest}]"),
            change(&|earlier| *earlier = earlier.split_off(1)),
        ),
        (
            format!("names [{}]", oldest - 2),
            change(&|earlier| earlier.insert(0, oldest - 2)),
        ),
        (
            "names [1001]".to_owned(),
            change(&|earlier| earlier[7] = 1_001),
        ),
        (
            "another order".to_owned(),
            change(&|earlier| earlier.swap(3, 4)),
        ),
    ] {
        assert!(changed.contains(&what), "{what}: {changed}");
        assert!(
            changed.len() < 200,
            "what is as it should be is not told: {changed}"
        );
    }
    let mut records = untouched;
    let removed = records.remove(9).sequence;
    let differences = replay::rebuild::<DeadlineMachine>(&records).1;
    assert_eq!(differences.len(), EARLIER_MAX, "every fact that names it");
    assert!(
        differences
            .iter()
            .all(|difference| difference.what.contains(&format!("names [{removed}]")))
    );
}
