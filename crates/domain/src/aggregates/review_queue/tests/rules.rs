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

/// Registers these (name, capacity, domains), gives them so many debates, and says who is given the
/// next one.
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

/// Experts with capacity, domains and the number of debates that they have.
type Experts = &'static [(&'static str, u32, &'static [&'static str], usize)];

const NO_DOMAIN: &[&str] = &[];
const TAX: &[&str] = &["Tax", "audit"];

/// Experts, the domain of a debate, who is excluded, and to whom it is assigned.
const ASSIGNED: [(&str, Experts, Option<&str>, &[&str], Option<&str>); 15] = [
    ("nobody is there", &[], None, &[], None),
    (
        "the only one",
        &[("eva", 3, NO_DOMAIN, 2)],
        None,
        &[],
        Some("eva"),
    ),
    ("full", &[("eva", 3, NO_DOMAIN, 3)], None, &[], None),
    ("a party", &[("eva", 3, NO_DOMAIN, 0)], None, &["eva"], None),
    (
        "another than the party",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 1, NO_DOMAIN, 0)],
        None,
        &["eva"],
        Some("finn"),
    ),
    (
        "equal: the lower id",
        &[("finn", 3, NO_DOMAIN, 0), ("eva", 3, NO_DOMAIN, 0)],
        None,
        &[],
        Some("eva"),
    ),
    (
        "the least loaded by share",
        &[("eva", 3, NO_DOMAIN, 1), ("finn", 10, NO_DOMAIN, 3)],
        None,
        &[],
        Some("finn"),
    ),
    (
        "the same share: longest ago",
        &[("finn", 2, NO_DOMAIN, 1), ("eva", 4, NO_DOMAIN, 2)],
        None,
        &[],
        Some("finn"),
    ),
    (
        "who knows it, though loaded",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 3, TAX, 2)],
        Some("tax"),
        &[],
        Some("finn"),
    ),
    (
        "case and spacing do not count",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 3, TAX, 0)],
        Some(" TAX"),
        &[],
        Some("finn"),
    ),
    (
        "nor does what parts words",
        &[
            ("eva", 3, NO_DOMAIN, 0),
            ("finn", 3, &["operating_margin"], 0),
        ],
        Some("Operating Margin"),
        &[],
        Some("finn"),
    ),
    (
        "who knows it is full: wait",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 1, TAX, 1)],
        Some("tax"),
        &[],
        None,
    ),
    (
        "who knows it is a party",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 3, TAX, 0)],
        Some("tax"),
        &["finn"],
        Some("eva"),
    ),
    (
        "nobody knows it",
        &[("eva", 3, NO_DOMAIN, 1), ("finn", 3, TAX, 0)],
        Some("law"),
        &[],
        Some("finn"),
    ),
    (
        "a blank domain is none",
        &[("eva", 3, NO_DOMAIN, 0), ("finn", 3, TAX, 1)],
        Some(" "),
        &[],
        Some("eva"),
    ),
];

#[test]
fn who_is_given_a_debate() {
    for (what, experts, domain, excluded, expected) in ASSIGNED {
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

/// Whether eva is there, and has no room; who else is there, with which capacity; how many debates
/// wait already; `queue_max`. Then what becomes of a debate that zoe takes part in: critical,
/// valuation, supporting.
struct FullQueue {
    what: &'static str,
    eva_is_full: bool,
    other: Option<(&'static str, u32)>,
    waiting: u64,
    queue_max: u32,
    expected: [&'static str; 3],
}

const STAYS: &str = "enqueued";
const GOES: &str = "overflowed";
const FULL_QUEUES: [FullQueue; 6] = [
    FullQueue {
        what: "nobody is registered: all wait",
        eva_is_full: false,
        other: None,
        waiting: 5,
        queue_max: 2,
        expected: [STAYS, STAYS, STAYS],
    },
    FullQueue {
        what: "there is room",
        eva_is_full: true,
        other: Some(("finn", 1)),
        waiting: 0,
        queue_max: 0,
        expected: [STAYS, STAYS, STAYS],
    },
    FullQueue {
        what: "no room, and place in the queue",
        eva_is_full: true,
        other: None,
        waiting: 1,
        queue_max: 2,
        expected: [STAYS, STAYS, GOES],
    },
    FullQueue {
        what: "no room, and no place",
        eva_is_full: true,
        other: None,
        waiting: 2,
        queue_max: 2,
        expected: [GOES, GOES, GOES],
    },
    FullQueue {
        what: "no place at all",
        eva_is_full: true,
        other: None,
        waiting: 0,
        queue_max: 0,
        expected: [GOES, GOES, GOES],
    },
    FullQueue {
        what: "who has room is a party",
        eva_is_full: true,
        other: Some(("zoe", 3)),
        waiting: 0,
        queue_max: 1,
        expected: [STAYS, STAYS, GOES],
    },
];

fn of_zoe(entry: Enqueued) -> Enqueued {
    Enqueued {
        excluded: vec![agent("zoe")],
        ..entry
    }
}

impl FullQueue {
    fn story(&self) -> QueueStory {
        let mut story = story();
        if self.eva_is_full {
            let full = [register("eva", 1, &[]), enqueue("d-eva", URGENT, 0)];
            hears_all(&mut story, full);
        }
        let waiting =
            (0..self.waiting).map(|n| enqueue_as(of_zoe(entry(&format!("d-{n}"), USUAL, n))));
        hears_all(&mut story, waiting);
        let other = self
            .other
            .map(|(name, capacity)| register(name, capacity, &[]));
        hears_all(&mut story, other);
        assert_eq!(
            story.state().waiting.len() as u64,
            self.waiting,
            "{}",
            self.what
        );
        story
    }

    fn check(&self, priority: DebatePriority, overflow: Overflow, expected: &str) {
        let mut story = self.story();
        story.sequence = 1_000;
        let input = QueueInput::Enqueue(Box::new(Enqueue {
            entry: of_zoe(entry("d-x", priority, 99)),
            overflow,
            queue_max: self.queue_max,
        }));
        assert_eq!(
            story.hears(&said("m-x", 0), &input),
            expected,
            "{}: {priority:?}",
            self.what
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

#[test]
fn what_becomes_of_a_debate_when_the_queue_is_full() {
    for queue in FULL_QUEUES {
        for (priority, expected) in DebatePriority::ALL.into_iter().zip(queue.expected) {
            for overflow in [Overflow::Defer, Overflow::Escalate] {
                queue.check(priority, overflow, expected);
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
