//! Order, who is given what, and what happens when the queue is full.

use super::*;

/// Assigns these, all waiting, to one expert with room for all, and says in which order.
fn order(entries: Vec<Enqueued>) -> Vec<String> {
    let mut story = story();
    for (place, entry) in entries.into_iter().enumerate() {
        assert_eq!(
            story.hears(&said(&format!("m-{place}"), 0), &enqueue_as(entry)),
            "enqueued"
        );
    }
    hears_all(&mut story, [register("eva", 100, &[])]);
    assigned(&story)
        .into_iter()
        .map(|(debate, _)| debate)
        .collect()
}

/// Which debate was given to whom, in the order in which it was.
fn assigned(story: &QueueStory) -> Vec<(String, String)> {
    let given = story
        .records
        .iter()
        .filter_map(|record| match &record.event {
            ReviewQueueEvent::Assigned(given) => {
                Some((given.debate_id.to_string(), given.expert.to_string()))
            }
            _ => None,
        });
    given.collect()
}

#[test]
fn priority_then_time_then_id() {
    let entries = vec![
        entry("d-1", MINOR, 1),
        entry("d-2", USUAL, 9),
        entry("d-4", USUAL, 5),
        entry("d-3", USUAL, 5),
        entry("d-5", URGENT, 99),
        entry("d-6", URGENT, 98),
    ];
    assert_eq!(order(entries), ["d-6", "d-5", "d-3", "d-4", "d-2", "d-1"]);
}

#[test]
fn the_critical_path_skips_the_queue_when_there_is_room_and_takes_nothing_away() {
    let mut story = busy();
    hears_all(&mut story, [enqueue("d-9", URGENT, 9)]);
    assert_eq!(picture(&story), "eva d-1 | finn d-2 | - d-9 d-3");
    hears_all(&mut story, [release("d-1")]);
    assert_eq!(picture(&story), "eva d-9 | finn d-2 | - d-3");
}

#[test]
fn a_debate_that_nobody_can_take_does_not_hold_up_the_next() {
    let mut story = story();
    hears_all(
        &mut story,
        [register("eva", 1, &["tax"]), register("finn", 1, &["law"])],
    );
    let tax = |name: &str| {
        enqueue_as(Enqueued {
            domain: Some("tax".into()),
            ..entry(name, URGENT, 1)
        })
    };
    hears_all(
        &mut story,
        [tax("d-1"), tax("d-2"), enqueue("d-3", USUAL, 3)],
    );
    assert_eq!(picture(&story), "eva d-1 | finn d-3 | - d-2");
}

/// Registers these (name, capacity, domains), gives them so many debates, and says who is given the next one.
fn given(
    experts: &[(&str, u32, &[&str], usize)],
    domain: Option<&str>,
    excluded: &[&str],
) -> Option<String> {
    let mut story = story();
    for (name, capacity, domains, held) in experts {
        hears_all(&mut story, [register(name, *capacity, domains)]);
        for number in 0..*held {
            let others = experts
                .iter()
                .map(|(name, ..)| agent(name))
                .filter(|other| other != &agent(name))
                .collect();
            let own = format!("{name}-{number}");
            hears_all(
                &mut story,
                [enqueue_as(Enqueued {
                    excluded: others,
                    ..entry(&own, URGENT, 0)
                })],
            );
        }
    }
    let (domain, excluded) = (
        domain.map(str::to_owned),
        excluded.iter().map(|name| agent(name)).collect(),
    );
    hears_all(
        &mut story,
        [enqueue_as(Enqueued {
            domain,
            excluded,
            ..entry("d-1", USUAL, 1)
        })],
    );
    story
        .state()
        .debates
        .get(&debate("d-1"))
        .and_then(|debate| Some(debate.holder.clone()?.expert.to_string()))
}

#[test]
fn who_is_given_a_debate() {
    let none: &[&str] = &[];
    let tax: &[&str] = &["Tax", "audit"];
    #[allow(clippy::type_complexity)]
    let table: [(
        &str,
        &[(&str, u32, &[&str], usize)],
        Option<&str>,
        &[&str],
        Option<&str>,
    ); 14] = [
        ("nobody is there", &[], None, &[], None),
        (
            "the only one",
            &[("eva", 3, none, 2)],
            None,
            &[],
            Some("eva"),
        ),
        ("full", &[("eva", 3, none, 3)], None, &[], None),
        ("a party", &[("eva", 3, none, 0)], None, &["eva"], None),
        (
            "another than the party",
            &[("eva", 3, none, 0), ("finn", 1, none, 0)],
            None,
            &["eva"],
            Some("finn"),
        ),
        (
            "equal: the lower id",
            &[("finn", 3, none, 0), ("eva", 3, none, 0)],
            None,
            &[],
            Some("eva"),
        ),
        (
            "the least loaded by share",
            &[("eva", 3, none, 1), ("finn", 10, none, 3)],
            None,
            &[],
            Some("finn"),
        ),
        (
            "the same share: longest ago",
            &[("finn", 2, none, 1), ("eva", 4, none, 2)],
            None,
            &[],
            Some("finn"),
        ),
        (
            "who knows it, though loaded",
            &[("eva", 3, none, 0), ("finn", 3, tax, 2)],
            Some("tax"),
            &[],
            Some("finn"),
        ),
        (
            "case and spacing do not count",
            &[("eva", 3, none, 0), ("finn", 3, tax, 0)],
            Some(" TAX"),
            &[],
            Some("finn"),
        ),
        (
            "who knows it is full: wait",
            &[("eva", 3, none, 0), ("finn", 1, tax, 1)],
            Some("tax"),
            &[],
            None,
        ),
        (
            "who knows it is a party",
            &[("eva", 3, none, 0), ("finn", 3, tax, 0)],
            Some("tax"),
            &["finn"],
            Some("eva"),
        ),
        (
            "nobody knows it",
            &[("eva", 3, none, 1), ("finn", 3, tax, 0)],
            Some("law"),
            &[],
            Some("finn"),
        ),
        (
            "a blank domain is none",
            &[("eva", 3, none, 0), ("finn", 3, tax, 1)],
            Some(" "),
            &[],
            Some("eva"),
        ),
    ];
    for (what, experts, domain, excluded, expected) in table {
        assert_eq!(
            given(experts, domain, excluded).as_deref(),
            expected,
            "{what}"
        );
    }
}

#[test]
fn experts_take_turns() {
    let mut story = story();
    hears_all(
        &mut story,
        ["eva", "finn", "gil"].map(|name| register(name, 1, &[])),
    );
    for number in 0..6 {
        let name = format!("d-{number}");
        hears_all(&mut story, [enqueue(&name, USUAL, number), release(&name)]);
    }
    let turns: Vec<String> = assigned(&story)
        .into_iter()
        .map(|(_, expert)| expert)
        .collect();
    assert_eq!(turns, ["eva", "finn", "gil", "eva", "finn", "gil"]);
}

#[test]
fn what_becomes_of_a_debate_when_the_queue_is_full() {
    let (stays, goes) = ("enqueued", "overflowed");
    // Whether eva is there, and has no room; who else is; what waits already; queue_max; what becomes of a debate that
    // zoe takes part in: critical, valuation, supporting.
    type Row<'a> = (&'a str, bool, &'a [QueueInput], u64, u32, [&'a str; 3]);
    let table: [Row<'_>; 6] = [
        (
            "nobody is registered: all wait",
            false,
            &[],
            5,
            2,
            [stays, stays, stays],
        ),
        (
            "there is room",
            true,
            &[register("finn", 1, &[])],
            0,
            0,
            [stays, stays, stays],
        ),
        (
            "no room, and place in the queue",
            true,
            &[],
            1,
            2,
            [stays, stays, goes],
        ),
        ("no room, and no place", true, &[], 2, 2, [goes, goes, goes]),
        ("no place at all", true, &[], 0, 0, [goes, goes, goes]),
        (
            "who has room is a party",
            true,
            &[register("zoe", 3, &[])],
            0,
            1,
            [stays, stays, goes],
        ),
    ];
    for (what, is_full, others, waiting, queue_max, row) in table {
        for (priority, expected) in DebatePriority::ALL.into_iter().zip(row) {
            let mut story = story();
            if is_full {
                hears_all(
                    &mut story,
                    [register("eva", 1, &[]), enqueue("d-eva", URGENT, 0)],
                );
            }
            let of_zoe = |entry: Enqueued| Enqueued {
                excluded: vec![agent("zoe")],
                ..entry
            };
            hears_all(
                &mut story,
                (0..waiting).map(|n| enqueue_as(of_zoe(entry(&format!("d-{n}"), USUAL, n)))),
            );
            hears_all(&mut story, others.iter().cloned());
            assert_eq!(story.state().waiting.len() as u64, waiting, "{what}");
            for overflow in [Overflow::Defer, Overflow::Escalate] {
                let entry = of_zoe(entry("d-x", priority, 99));
                let input = QueueInput::Enqueue(Box::new(Enqueue {
                    entry,
                    overflow,
                    queue_max,
                }));
                let mut story = QueueStory {
                    versioned: story.versioned.clone(),
                    ..QueueStory::of(id().as_str())
                };
                story.sequence = 1_000;
                assert_eq!(
                    story.hears(&said("m-x", 0), &input),
                    expected,
                    "{what}: {priority:?}"
                );
                if let ReviewQueueEvent::Overflowed(overflowed) = &story.last().event {
                    assert_eq!(overflowed.handling, overflow);
                    assert_eq!(
                        story.hears(&said("m-y", 0), &input),
                        "ignored: already_done",
                        "not asked again"
                    );
                    assert_eq!(
                        story.hears(&said("m-z", 0), &release("d-x")),
                        "ignored: already_done"
                    );
                }
            }
        }
    }
}

#[test]
fn a_supporting_debate_that_waits_for_its_experts_overflows_though_others_have_room() {
    let mut story = story();
    hears_all(
        &mut story,
        [register("eva", 1, &["tax"]), register("finn", 1, &[])],
    );
    let tax = |name: &str, priority| {
        enqueue_as(Enqueued {
            domain: Some("tax".into()),
            ..entry(name, priority, 1)
        })
    };
    hears_all(&mut story, [tax("d-1", USUAL)]);
    assert_eq!(
        story.hears(&said("m-2", 0), &tax("d-2", MINOR)),
        "overflowed"
    );
    assert_eq!(story.hears(&said("m-3", 0), &tax("d-3", USUAL)), "enqueued");
}

#[test]
fn what_is_released_before_it_comes_does_not_come() {
    let mut story = story();
    assert_eq!(
        story.hears(&happened("e-1", 5), &release("d-1")),
        "released"
    );
    assert_eq!(
        story.hears(&happened("e-0", 1), &enqueue("d-1", USUAL, 1)),
        "ignored: already_done"
    );
    assert_eq!(picture(&story), "-");
}

#[test]
fn what_is_released_while_it_waits_leaves_the_queue() {
    let mut story = busy();
    hears_all(&mut story, [release("d-3"), release("d-1")]);
    assert_eq!(picture(&story), "eva | finn d-2 | -");
}
