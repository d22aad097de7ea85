use std::collections::BTreeSet;

use concord_events::AggregateEvent;
use concord_wire::payload::NAME_BYTES_MAX;
use concord_wire::payload::track_record::{Context as Circumstances, Source};
use concord_wire::{DebateId, MessageId};
use proptest::prelude::*;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

const SOURCES: [Source; 3] = [Source::Outcome, Source::Ruling, Source::Override];

fn observation(at: u64, source: Source) -> Observation {
    Observation {
        at: after(at),
        correct: !at.is_multiple_of(3),
        domain: "valuation".into(),
        regime: None,
        context: Circumstances::default(),
        source,
        overridden: source == Source::Override,
    }
}

fn observe(debate: Option<&str>, observation: Observation) -> Observe {
    Observe {
        observation,
        debate_id: debate.map(|id| DebateId::new(id).unwrap()),
        case_id: Some(case_id()),
        opened_by: None,
        by: agent("olga"),
        imported: None,
        tell: None,
    }
}

#[test]
fn an_imported_observation_counts_once_for_its_id() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    let imported = |id: &str, at| Observe {
        imported: Some(ImportOrigin {
            id: id.into(),
            source: "back-test".into(),
        }),
        case_id: None,
        opened_by: None,
        ..observe(None, observation(at, Source::Import))
    };
    for (cause, id, at, expected) in [
        ("o-1", "r-1", 1, "observed"),
        ("o-2", "r-1", 1, "ignored: repetition"),
        ("o-3", "r-1", 2, "ignored: repetition"),
        ("o-4", "r-2", 1, "observed"),
    ] {
        let heard = story.hears(&said(cause, 10), &imported(id, at));
        assert_eq!(heard, expected, "{id} of {cause}");
    }
    // A debate of that name is something else.
    let of_debate = observe(Some("r-1"), observation(1, Source::Outcome));
    assert_eq!(story.hears(&said("m-1", 10), &of_debate), "observed");
    let TrackRecordEvent::Observed(first) = &story.records[0].event;
    assert_eq!(first.imported.as_ref().unwrap().source, "back-test");
}

/// A case of ann and ben in which the records of both change, and what is told of ann's.
pub(crate) fn told_story() -> Story<TrackRecordMachine> {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    let tell = Tell {
        to: vec![agent("ben"), agent("ann"), agent("olga")],
        topic: "Operating margin".into(),
        version: Version::Simple,
    };
    for (at, debate) in [(3, "d-1"), (4, "d-2")] {
        let observe = Observe {
            tell: Some(tell.clone()),
            ..observe(Some(debate), observation(at, Source::Override))
        };
        assert_eq!(story.hears(&happened(debate, 10), &observe), "observed");
        assert_eq!(
            story.hears(&happened(debate, 11), &observe),
            "ignored: repetition"
        );
    }
    story
}

#[test]
fn who_is_in_the_case_is_told_once_what_became_of_a_credibility() {
    let story = told_story();
    let of = |place: usize| {
        let messages =
            crate::effect::messages::<TrackRecordMachine>(&story.records[place]).unwrap();
        let to: Vec<String> = messages
            .iter()
            .map(|one| one.to_agent.to_string())
            .collect();
        assert_eq!(to, ["ben", "ann", "olga"], "the agent is told once, too");
        let message = &messages[0];
        assert_eq!(message.priority, concord_wire::Priority::High);
        let told: concord_wire::payload::Notification = message.payload().unwrap();
        let data = told.data.clone();
        assert!(told.typed().unwrap().is_ok());
        (
            data["before"]["score"].clone(),
            data["after"]["score"].clone(),
            data["correct"].clone(),
            data["source"].clone(),
        )
    };
    let json = |value| serde_json::json!(value);
    assert_eq!(
        of(0),
        (json(0.5), json(0.0), false.into(), "override".into())
    );
    assert_eq!(
        of(1),
        (json(0.0), json(0.5), true.into(), "override".into())
    );
}

#[test]
fn who_is_not_in_the_case_is_told_of_its_own_record_and_nobody_of_what_belongs_to_none() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    let tell = Tell {
        to: vec![agent("ben")],
        topic: "Operating margin".into(),
        version: Version::Simple,
    };
    let of_debate = Observe {
        tell: Some(tell),
        ..observe(Some("d-1"), observation(1, Source::Ruling))
    };
    story.hears(&happened("e-1", 10), &of_debate);
    story.hears(
        &said("m-1", 10),
        &observe(None, observation(2, Source::Outcome)),
    );
    let told = |place: usize| TrackRecordMachine::effects(&story.records[place]).len();
    assert_eq!((told(0), told(1)), (2, 0));
}

fn query(now: Timestamp) -> Query {
    Query {
        now,
        domain: "Valuation".into(),
        regime: None,
        context: Circumstances::default(),
    }
}

#[test]
fn an_observation_counts_once_for_each_debate_and_source() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    for (cause, debate, at, source, expected) in [
        ("m-1", Some("d-1"), 1, Source::Ruling, "observed"),
        ("m-1", Some("d-1"), 1, Source::Ruling, "ignored: repetition"),
        // Another message about the same, with another time.
        ("m-2", Some("d-1"), 2, Source::Ruling, "ignored: repetition"),
        ("m-3", Some("d-1"), 2, Source::Override, "observed"),
        ("m-4", Some("d-2"), 1, Source::Ruling, "observed"),
        ("m-5", None, 3, Source::Outcome, "observed"),
        ("m-5", None, 4, Source::Outcome, "ignored: repetition"),
        // Two messages of no debate are two observations, though they say the same.
        ("m-6", None, 3, Source::Outcome, "observed"),
        // An id that was used for a debate is not that of an observation of none.
        ("m-1", None, 5, Source::Outcome, "observed"),
    ] {
        let heard = story.hears(&said(cause, 10), &observe(debate, observation(at, source)));
        assert_eq!(heard, expected, "{cause} of {debate:?} at {at}");
    }
    assert_eq!(
        (
            story.state().observations().len(),
            story.state().forgotten()
        ),
        (6, 0)
    );
    let TrackRecordEvent::Observed(first) = &story.records[0].event;
    assert_eq!(
        (first.by.as_str(), &first.case_id),
        ("olga", &Some(case_id()))
    );
    assert_eq!(
        TrackRecordMachine::case_of(&story.records[0]),
        Some(case_id())
    );
    assert!(!TrackRecordMachine::creates(&observe(
        None,
        observation(1, Source::Outcome)
    )));
}

#[test]
fn what_cannot_have_been_observed_is_refused_at_its_place() {
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    let good = observation(10, Source::Outcome);
    for (changed, expected) in [
        (good.clone(), "observed"),
        (
            observation(11, Source::Outcome),
            "refused: /payload/observation/at",
        ),
        (
            Observation {
                domain: " ".into(),
                ..good.clone()
            },
            "refused: /payload/observation/domain",
        ),
        (
            Observation {
                regime: Some(long),
                ..good
            },
            "refused: /payload/observation/regime",
        ),
    ] {
        let mut story = Story::<TrackRecordMachine>::of("ann");
        assert_eq!(
            story.hears(&said("m-1", 10), &observe(Some("d-1"), changed)),
            expected
        );
    }
}

#[test]
fn observations_stand_in_the_order_of_their_time_whatever_that_of_their_arrival() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    for (place, at) in [5, 1, 9, 1, 5].into_iter().enumerate() {
        let input = observe(None, observation(at, Source::Outcome));
        assert_eq!(
            story.hears(&said(&format!("m-{place}"), 10), &input),
            "observed"
        );
    }
    let times: Vec<_> = story
        .state()
        .observations()
        .map(|observation| observation.at)
        .collect();
    assert_eq!(times, [1, 1, 5, 5, 9].map(after));
}

#[test]
fn the_credibility_is_that_of_the_observations() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    for n in 0..20 {
        let input = observe(Some(&format!("d-{n}")), observation(n, Source::Outcome));
        story.hears(&said("m", 100), &input);
    }
    for version in [Version::Simple, Version::Comprehensive] {
        let record: Vec<_> = story.state().observations().cloned().collect();
        let found = credibility_of(story.state(), version, &query(after(100)));
        assert_eq!(
            found,
            credibility::score(version, &record, &query(after(100)))
        );
        assert_eq!(found.observations, 20);
    }
    let none = credibility_of(
        &TrackRecordState::default(),
        Version::Simple,
        &query(after(100)),
    );
    assert!((none.score, none.observations) == (0.5, 0));
}

#[test]
fn of_more_than_five_thousand_observations_the_oldest_is_forgotten() {
    let mut state = TrackRecordState::default();
    let cause = |n: u64| Origin::Cause(MessageId::new(format!("m-{n}")).unwrap());
    for n in 0..OBSERVATIONS_MAX as u64 + 3 {
        state.keep(
            cause(n),
            observation(n, Source::Outcome),
            None,
            OBSERVATIONS_MAX,
        );
    }
    assert_eq!(
        (state.observations().len(), state.forgotten()),
        (OBSERVATIONS_MAX, 3)
    );
    assert_eq!(state.observations().next().unwrap().at, after(3));
    assert!(!state.has(&cause(2), Source::Outcome) && state.has(&cause(3), Source::Outcome));
    // Brought again, what was forgotten would be the oldest again.
    let context = Context::of_message(after(99_999), MessageId::new("m-2").unwrap());
    let again = |n| observe(None, observation(n, Source::Outcome));
    assert_eq!(
        TrackRecordMachine::decide(&state, &context, &again(2)),
        Decision::Ignore(Ignored::AlreadyDone)
    );
    assert!(
        matches!(
            TrackRecordMachine::decide(&state, &context, &again(4)),
            Decision::Append(_)
        ),
        "of another cause"
    );
}

#[derive(Debug, Clone)]
struct Step {
    cause: String,
    debate: Option<String>,
    at: u64,
    now: u64,
    source: Source,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let debate = proptest::option::of((0u32..4).prop_map(|n| format!("d-{n}")));
    let step = (
        0u32..20,
        debate,
        0u64..40,
        0u64..40,
        proptest::sample::select(SOURCES.to_vec()),
    );
    let step = step.prop_map(|(cause, debate, at, now, source)| Step {
        cause: format!("m-{cause}"),
        debate,
        at,
        now,
        source,
    });
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn a_record_keeps_its_word(steps in steps()) {
        let mut story = Story::<TrackRecordMachine>::of("ann");
        let mut known = BTreeSet::new();
        for Step { cause, debate, at, now, source } in &steps {
            let input = observe(debate.as_deref(), observation(*at, *source));
            let heard = story.hears(&said(cause, *now), &input);
            let key = (debate.clone(), debate.is_none().then(|| cause.clone()), *source);
            let expected = match () {
                () if at > now => "refused: /payload/observation/at",
                () if known.insert(key) => "observed",
                () => "ignored: repetition",
            };
            prop_assert_eq!(heard, expected);
        }
        prop_assert_eq!(story.state().observations().len(), known.len());
        prop_assert!(story.state().observations().is_sorted_by_key(|observation| observation.at));
        let (rebuilt, differences) = replay::rebuild::<TrackRecordMachine>(&story.records);
        prop_assert_eq!(differences, vec![]);
        prop_assert_eq!(&*rebuilt.state, story.state());
        for version in [Version::Simple, Version::Comprehensive] {
            let (now, again) = (credibility_of(story.state(), version, &query(after(99))), &rebuilt.state);
            prop_assert_eq!(now, credibility_of(again, version, &query(after(99))));
        }
    }

    #[test]
    fn the_newest_are_kept_with_what_identifies_them(
        times in proptest::collection::vec(0u64..30, 0..40), most in 1usize..12,
    ) {
        let mut state = TrackRecordState::default();
        let cause = |place: usize| Origin::Cause(MessageId::new(format!("m-{place}")).unwrap());
        for (place, at) in times.iter().enumerate() {
            state.keep(cause(place), observation(*at, Source::Outcome), None, most);
        }
        let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        let (forgotten, kept) = expected.split_at(times.len().saturating_sub(most));
        let found: Vec<_> = state.observations().map(|observation| observation.at).collect();
        prop_assert_eq!(found, kept.iter().map(|(at, _)| after(*at)).collect::<Vec<_>>());
        prop_assert_eq!(state.forgotten(), forgotten.len() as u64);
        prop_assert!(kept.iter().all(|(_, place)| state.has(&cause(*place), Source::Outcome)));
        prop_assert!(!forgotten.iter().any(|(_, place)| state.has(&cause(*place), Source::Outcome)));
    }
}

#[test]
fn an_observation_that_nobody_is_told_of_has_no_effects_and_none_moves_deadlines() {
    let mut story = Story::<TrackRecordMachine>::of("ann");
    story.hears(
        &said("m-1", 9),
        &observe(None, observation(1, Source::Outcome)),
    );
    assert_eq!(TrackRecordMachine::effects(story.last()), []);
    assert!(
        TrackRecordEvent::EVENTS
            .iter()
            .all(|info| !info.moves_deadlines)
    );
}
