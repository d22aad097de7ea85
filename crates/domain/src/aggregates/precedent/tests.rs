use std::collections::BTreeMap;

use concord_events::AggregateEvent;
use concord_wire::Timestamp;
use concord_wire::payload::{NAME_BYTES_MAX, json_text_bytes};
use proptest::prelude::*;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

fn debate(n: u32) -> DebateId {
    DebateId::new(format!("d-{n}")).unwrap()
}

fn entry(n: u32, at: u64, level: u8, position: &str) -> Precedent {
    Precedent {
        debate_id: debate(n),
        topic: "Risk score spread: 35-80".into(),
        position: position.into(),
        level,
        status: "vote".into(),
        at: after(at),
        matter: None,
        proved: None,
    }
}

fn times(entries: &[&Precedent]) -> Vec<Timestamp> {
    entries.iter().map(|entry| entry.at).collect()
}

#[test]
fn of_one_debate_the_later_entry_stands() {
    let mut story = Story::<PrecedentMachine>::of("p");
    for (given, expected) in [
        (entry(1, 10, 4, "80"), "recorded"),
        (entry(1, 10, 4, "80"), "ignored: repetition"),
        // A gate overrides what was provisional; the provisional entry comes once more.
        (entry(1, 20, 5, "35"), "recorded"),
        (entry(1, 10, 4, "80"), "ignored: already_done"),
        (entry(1, 20, 4, "80"), "ignored: already_done"),
        (entry(1, 20, 5, "35"), "ignored: repetition"),
        (entry(1, 20, 5, "40"), "recorded"),
        (entry(2, 15, 1, "60"), "recorded"),
    ] {
        assert_eq!(story.hears(&said("m", 99), &given), expected, "{given:?}");
    }
    let positions = |most| {
        recent(story.state(), most)
            .iter()
            .map(|entry| entry.position.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(positions(5), ["40", "60"], "the newest first");
    assert_eq!((positions(1), positions(0)), (vec!["40"], vec![]));
    assert_eq!(story.state().of(&debate(1)).unwrap().level, 5);
    assert_eq!(story.state().of(&debate(3)), None);
    assert_eq!(PrecedentMachine::case_of(story.last()), None);
    assert!(!PrecedentMachine::creates(&entry(1, 1, 1, "")));
}

#[test]
fn a_debate_of_the_same_case_is_no_earlier_decision_and_takes_no_place_of_one() {
    let matter = PrecedentMatter {
        kind: ConflictType::Challenge,
        subject: "operating margin".into(),
        policy: "contract-review".into(),
        domain: None,
        circumstances: Default::default(),
    };
    let mut story = Story::<PrecedentMachine>::of("p");
    for n in 1..=3 {
        let given = Precedent {
            matter: Some(matter.clone()),
            ..entry(n, u64::from(n), 3, "28")
        };
        assert_eq!(story.hears(&said(&format!("m-{n}"), 9), &given), "recorded");
    }
    let nothing = PrecedentState::default();
    let found = |own: &[u32], most| {
        let own = own.iter().map(|n| debate(*n)).collect();
        let found = alike_elsewhere(&matter, (story.state(), &nothing), &own, most);
        times(&found)
    };
    assert_eq!(found(&[], 2), [after(3), after(2)]);
    assert_eq!(found(&[3], 2), [after(2), after(1)]);
}

#[test]
fn what_is_no_precedent_is_refused_at_its_place() {
    let good = entry(1, 10, 3, "80");
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    for (given, expected) in [
        (good.clone(), "recorded"),
        (
            Precedent {
                level: 0,
                ..good.clone()
            },
            "refused: /payload/precedent/level",
        ),
        (
            Precedent {
                level: 6,
                ..good.clone()
            },
            "refused: /payload/precedent/level",
        ),
        (
            Precedent {
                status: String::new(),
                ..good.clone()
            },
            "refused: /payload/precedent/status",
        ),
        (
            Precedent {
                status: long,
                ..good
            },
            "refused: /payload/precedent/status",
        ),
    ] {
        assert_eq!(
            Story::<PrecedentMachine>::of("p").hears(&said("m", 99), &given),
            expected
        );
    }
}

#[test]
fn long_texts_are_shortened_at_a_character_and_are_the_same_when_they_come_again() {
    let mut story = Story::<PrecedentMachine>::of("p");
    let long = Precedent {
        topic: "é".repeat(400),
        ..entry(1, 10, 2, &"\u{1}ü".repeat(200))
    };
    assert_eq!(story.hears(&said("m-1", 99), &long), "recorded");
    assert_eq!(story.hears(&said("m-2", 99), &long), "ignored: repetition");
    let kept = story.state().of(&debate(1)).unwrap().clone();
    for (whole, short) in [(&long.topic, &kept.topic), (&long.position, &kept.position)] {
        assert!((500..=512).contains(&json_text_bytes(short)), "{short}");
        assert!(whole.starts_with(short.strip_suffix("… [shortened]").unwrap()));
    }
    assert_eq!(
        story.hears(&said("m-3", 99), &kept),
        "ignored: repetition",
        "shortening again changes nothing"
    );
    let fits = Precedent {
        topic: "é".repeat(256),
        ..entry(2, 10, 2, "")
    };
    story.hears(&said("m-4", 99), &fits);
    assert_eq!(
        story.state().of(&debate(2)),
        Some(&fits),
        "what fits is left as it is"
    );
}

#[test]
fn the_id_is_that_of_kind_and_subject_however_it_is_written() {
    let kind = ConflictType::SeverityDisagreement;
    assert_eq!(
        id_of(kind, "Governing Law"),
        id_of(kind, " governing  law.")
    );
    assert_ne!(id_of(kind, "Governing Law"), id_of(kind, "Law"));
    assert_ne!(
        id_of(kind, "Governing Law"),
        id_of(ConflictType::ClausePresenceDisagreement, "Governing Law")
    );
    assert_eq!(
        Token::new(id_of(kind, "a.b c*").as_str()),
        Ok(id_of(kind, "a.b c*"))
    );
}

#[test]
fn of_more_than_twenty_debates_the_oldest_is_forgotten() {
    let mut story = Story::<PrecedentMachine>::of("p");
    for n in 0..25 {
        assert_eq!(
            story.hears(
                &said(&format!("m-{n}"), 99),
                &entry(n, u64::from(n), 1, "80")
            ),
            "recorded"
        );
    }
    let all = recent(story.state(), usize::MAX);
    assert_eq!(times(&all), (5..25).rev().map(after).collect::<Vec<_>>());
    assert_eq!(
        times(&recent(story.state(), 5)),
        (20..25).rev().map(after).collect::<Vec<_>>()
    );
}

/// The fact has the same id both times, so the broker would not store it: it would be tried for
/// ever.
#[test]
fn what_is_forgotten_is_not_recorded_when_it_comes_again() {
    let mut story = Story::<PrecedentMachine>::of("p");
    let given: Vec<Precedent> = (0..21)
        .map(|n| entry(n, 10 + u64::from(n / 2), 1, "80"))
        .collect();
    for entry in &given {
        assert_eq!(
            story.hears(&said(&format!("m-{}", entry.debate_id), 99), entry),
            "recorded"
        );
    }
    assert_eq!(story.state().of(&debate(0)), None);
    assert_eq!(
        story.hears(&said("m-d-0", 99), &given[0]),
        "ignored: already_done"
    );
    assert_eq!(
        story.hears(&said("m-30", 99), &entry(30, 5, 1, "80")),
        "ignored: already_done",
        "it would be forgotten"
    );
    assert_eq!(
        story.hears(&said("m-31", 99), &entry(1, 10, 2, "80")),
        "recorded",
        "the oldest, and in its place"
    );
    assert_eq!(recent(story.state(), usize::MAX).len(), DEBATES_MAX);
}

proptest! {
    #[test]
    fn a_precedent_keeps_its_word(given in proptest::collection::vec((0u32..30, 0u64..50, 0u8..8, 0u32..3), 0..80)) {
        let mut story = Story::<PrecedentMachine>::of("p");
        // By debate, the last entry of which it was said that it is recorded.
        let mut last = BTreeMap::new();
        for (place, (n, at, level, position)) in given.iter().enumerate() {
            let entry = entry(*n, *at, *level, &position.to_string());
            let heard = story.hears(&said(&format!("m-{place}"), 0), &entry);
            prop_assert_eq!(heard == "refused: /payload/precedent/level", !(1..=5).contains(level));
            if heard == "recorded" {
                last.insert(*n, entry);
            }
            let kept = recent(story.state(), usize::MAX);
            prop_assert_eq!(kept.len(), last.len().min(DEBATES_MAX));
            prop_assert!(kept.iter().rev().is_sorted_by_key(|entry| entry.at));
        }
        for entry in recent(story.state(), usize::MAX) {
            prop_assert!(last.values().any(|recorded| recorded == entry));
        }
        let (rebuilt, differences) = replay::rebuild::<PrecedentMachine>(&story.records);
        prop_assert_eq!(differences, vec![]);
        prop_assert_eq!(&*rebuilt.state, story.state());
    }

    #[test]
    fn the_newest_debates_are_kept(
        entries in proptest::collection::btree_map(0u32..40, 0u64..1_000, 0..30), most in 1usize..8,
    ) {
        let mut state = PrecedentState::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        for (n, at) in &entries {
            state.keep(entry(*n, *at, 1, "80"), most);
            expected.push((*at, *n));
        }
        expected.sort_unstable();
        let expected: Vec<_> = expected.into_iter().rev().take(most).map(|(_, n)| debate(n)).collect();
        let found: Vec<_> = recent(&state, usize::MAX).into_iter().map(|entry| entry.debate_id.clone()).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn precedents_have_no_effects_and_move_no_deadlines() {
    let mut story = Story::<PrecedentMachine>::of("p");
    story.hears(&said("m-1", 9), &entry(1, 1, 1, "80"));
    assert_eq!(PrecedentMachine::effects(story.last()), []);
    assert!(
        PrecedentEvent::EVENTS
            .iter()
            .all(|info| !info.has_effects && !info.moves_deadlines)
    );
}
