//! The queue is fair between openers, whatever one of them opens.

use std::collections::BTreeMap;

use concord_events::OverflowReason;
use proptest::prelude::*;

use super::*;

fn of(opener: &str, entry: Enqueued) -> Enqueued {
    Enqueued {
        opened_by: Some(agent(opener)),
        ..entry
    }
}

fn enqueue_of(opener: &str, name: &str, entered: u64) -> QueueInput {
    enqueue_as(of(opener, entry(name, USUAL, entered)))
}

fn order(story: &QueueStory) -> Vec<String> {
    let ids = story.state().waiting.in_order();
    ids.map(ToString::to_string).collect()
}

/// eva, who has one debate, and these that wait.
fn waiting(debates: impl IntoIterator<Item = QueueInput>) -> QueueStory {
    let mut story = story();
    hears_all(
        &mut story,
        [register("eva", 1, &[]), enqueue("d-0", URGENT, 0)],
    );
    hears_all(&mut story, debates);
    story
}

/// Has eva rule on what she has, again and again, and says in which order she was given debates.
fn ruled(story: &mut QueueStory) -> Vec<String> {
    let mut given = Vec::new();
    while let Some(debate) = story.state().experts[&agent("eva")].held.first().cloned() {
        given.push(debate.to_string());
        hears_all(story, [release(debate.as_str())]);
    }
    given
}

#[test]
fn openers_take_turns() {
    let floods = (1..=4).map(|n| enqueue_of("ada", &format!("a-{n}"), n));
    let others = [enqueue_of("bob", "b-1", 5), enqueue_of("bob", "b-2", 6)];
    let mut story = waiting(floods.chain(others));
    let expected = ["a-1", "b-1", "a-2", "b-2", "a-3", "a-4"];
    assert_eq!(order(&story), expected);
    assert_eq!(ruled(&mut story)[1..], expected);
}

#[test]
fn a_turn_is_remembered_when_nothing_of_the_opener_waits_any_more() {
    let mut story = waiting([enqueue_of("bob", "b-1", 1), enqueue_of("ada", "a-1", 2)]);
    hears_all(&mut story, [release("d-0"), enqueue_of("bob", "b-2", 3)]);
    // bob, of whom one debate waits at a time, was served already; ada was not.
    assert_eq!(order(&story), ["a-1", "b-2"]);
}

#[test]
fn priority_goes_before_turns_and_each_priority_has_its_own() {
    let urgent = |name: &str, entered| enqueue_as(of("ada", entry(name, URGENT, entered)));
    let mut story = waiting([urgent("u-1", 1), enqueue_of("ada", "a-1", 2)]);
    hears_all(&mut story, [enqueue_of("bob", "b-1", 3), urgent("u-2", 4)]);
    // The urgent ones of ada do not cost her usual ones their turn.
    assert_eq!(ruled(&mut story)[1..], ["u-1", "u-2", "a-1", "b-1"]);
}

#[test]
fn debates_without_an_opener_are_those_of_one() {
    let mut story = waiting([
        enqueue("d-1", USUAL, 1),
        enqueue("d-2", USUAL, 2),
        enqueue_of("ada", "a-1", 3),
    ]);
    assert_eq!(ruled(&mut story)[1..], ["d-1", "a-1", "d-2"]);
}

#[test]
fn one_opener_does_not_fill_the_queue_for_another() {
    let small = |opener: &str, name: &str| {
        QueueInput::Enqueue(Box::new(Enqueue {
            entry: of(opener, entry(name, USUAL, 1)),
            overflow: Overflow::Defer,
            queue_max: 4,
        }))
    };
    let mut story = waiting((0..4).map(|n| small("ada", &format!("a-{n}"))));
    let mut hears = |opener: &str, name: &str| {
        let input = small(opener, name);
        story.hears(&said(&format!("m-{name}"), 9), &input)
    };
    assert_eq!(hears("ada", "a-5"), "overflowed");
    assert_eq!(hears("bob", "b-1"), "enqueued");
    assert_eq!(hears("bob", "b-2"), "enqueued");
    assert_eq!(hears("bob", "b-3"), "overflowed", "half of four places");
    assert_eq!(hears("cleo", "c-1"), "enqueued");
}

#[test]
fn debates_of_one_opener_that_wait_are_bounded_by_the_installation() {
    let bounded = |opener: &str, name: &str| {
        let entry = of(opener, entry(name, USUAL, 1));
        enqueue_as(Enqueued {
            opener_waiting_max: 2,
            ..entry
        })
    };
    let mut story = waiting([bounded("ada", "a-1"), bounded("ada", "a-2")]);
    let heard = |story: &mut QueueStory, opener: &str, name: &str| {
        story.hears(&said(&format!("m-{name}"), 9), &bounded(opener, name))
    };
    assert_eq!(heard(&mut story, "ada", "a-3"), "overflowed");
    let before = story.state().clone();
    let last = story.last().clone();
    let ReviewQueueEvent::Overflowed(overflowed) = &last.event else {
        panic!("{last:?}")
    };
    let OverflowReason::OpenerQuota {
        opened_by,
        waiting_max: 2,
    } = &overflowed.reason
    else {
        panic!("{overflowed:?}")
    };
    assert_eq!(*opened_by, agent("ada"));
    assert_eq!(decide_again(&before, &last), Ok(false));
    assert!(decide_again(&QueueState::default(), &last).is_err());
    assert_eq!(heard(&mut story, "bob", "b-1"), "enqueued");
    let room = [register("finn", 9, &[]), bounded("ada", "a-4")];
    hears_all(&mut story, room);
    assert_eq!(order(&story), Vec::<String>::new());
}

/// How often each other opener is served while one debate of `whose` waits.
fn served_before(story: &QueueStory, debate_id: &str) -> BTreeMap<Option<AgentId>, u32> {
    let entered = |id: &DebateId| {
        let mut records = story.records.iter();
        records.find_map(|record| match &record.event {
            ReviewQueueEvent::Enqueued(entry) if entry.debate_id == *id => {
                Some((record.sequence, entry.opened_by.clone()))
            }
            _ => None,
        })
    };
    let (from, _) = entered(&debate(debate_id)).unwrap();
    let mut served = BTreeMap::new();
    for record in story.records.iter().filter(|one| one.sequence > from) {
        if let ReviewQueueEvent::Assigned(given) = &record.event {
            if given.debate_id == debate(debate_id) {
                return served;
            }
            let (_, opener) = entered(&given.debate_id).unwrap();
            *served.entry(opener).or_default() += 1;
        }
    }
    panic!("{debate_id} was never assigned")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However many debates others have, and whenever the only one of bob comes: at most one
    /// assignment of each other opener goes before it.
    #[test]
    fn a_flood_delays_a_single_debate_by_one_assignment(
        floods in proptest::collection::vec((0usize..4, 0u64..50), 1..80),
        place in 0usize..80,
        rules_before in 0usize..10,
    ) {
        let openers = ["ada", "cleo", "dan"];
        let mut inputs: Vec<QueueInput> = floods
            .iter()
            .enumerate()
            .map(|(n, (opener, entered))| {
                let entry = entry(&format!("d-{}", n + 1), USUAL, *entered);
                let opened_by = openers.get(*opener).map(|opener| agent(opener));
                enqueue_as(Enqueued { opened_by, ..entry })
            })
            .collect();
        let bob = enqueue_of("bob", "b-1", 1_000);
        let rest = inputs.split_off(place.min(inputs.len()));
        let mut story = waiting(inputs);
        for _ in 0..rules_before {
            let held = story.state().experts[&agent("eva")].held.first().cloned();
            hears_all(&mut story, held.iter().map(|held| release(held.as_str())));
        }
        hears_all(&mut story, [bob].into_iter().chain(rest));
        ruled(&mut story);
        let served = served_before(&story, "b-1");
        prop_assert!(served.values().all(|times| *times <= 1), "{served:?}");
    }
}
