use concord_wire::Fault;
use concord_wire::payload::{Contact, DebatePriority, Expert};

use super::*;
use crate::fixtures::*;

mod experts;
mod giving_back;
mod openers;
mod properties;
mod rules;

type QueueStory = Story<ReviewQueueMachine>;

const URGENT: DebatePriority = DebatePriority::CriticalPath;
const USUAL: DebatePriority = DebatePriority::Valuation;
const MINOR: DebatePriority = DebatePriority::Supporting;

fn story() -> QueueStory {
    QueueStory::of(id().as_str())
}

fn debate(name: &str) -> DebateId {
    DebateId::new(name).unwrap()
}

fn expert(name: &str, capacity: u32, domains: &[&str]) -> Expert {
    let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
    Expert {
        agent_id: agent(name),
        name: None,
        domains,
        contact: Default::default(),
        capacity,
    }
}

fn register(name: &str, capacity: u32, domains: &[&str]) -> QueueInput {
    let expert = expert(name, capacity, domains);
    QueueInput::Register(Box::new(ExpertRegistered {
        by: agent(name),
        expert,
        follows: 0,
    }))
}

fn leave(name: &str) -> QueueInput {
    QueueInput::Leave {
        agent_id: agent(name),
        by: agent("olga"),
        why: "holiday".into(),
        follows: 0,
        was_expert: false,
    }
}

/// A debate that came to need a person so many milliseconds after the start.
fn entry(name: &str, priority: DebatePriority, entered: u64) -> Enqueued {
    Enqueued {
        debate_id: debate(name),
        case_id: case_id(),
        priority,
        opened_by: None,
        opener_waiting_max: 0,
        domain: None,
        excluded: Vec::new(),
        entered_at: after(entered),
        due: after(entered + 21_600_000),
    }
}

fn enqueue_as(entry: Enqueued) -> QueueInput {
    QueueInput::Enqueue(Box::new(Enqueue {
        entry,
        overflow: Overflow::Defer,
        queue_max: 100,
    }))
}

fn enqueue(name: &str, priority: DebatePriority, entered: u64) -> QueueInput {
    enqueue_as(entry(name, priority, entered))
}

fn release(name: &str) -> QueueInput {
    QueueInput::Release {
        debate_id: debate(name),
        reason: ReleaseReason::Ruled,
    }
}

fn give_back(name: &str, expert: &str) -> QueueInput {
    QueueInput::GiveBack {
        debate_id: debate(name),
        expert: agent(expert),
    }
}

fn reassign(name: &str, to: &str) -> QueueInput {
    QueueInput::Reassign {
        debate_id: debate(name),
        to: agent(to),
        by: agent("olga"),
        why: "knows it best".into(),
    }
}

/// Hears each of these, each by a cause of its own, and advances after every fact until there is
/// nothing to do, as the facilitator does.
fn hears_all(story: &mut QueueStory, inputs: impl IntoIterator<Item = QueueInput>) {
    for input in inputs {
        let cause = format!("m-{}-{}", story.sequence, story.records.len());
        hears(story, &said(&cause, 0), &input);
    }
}

/// Hears one, and advances after every fact until there is nothing to do.
fn hears(story: &mut QueueStory, context: &Context, input: &QueueInput) -> String {
    let known = story.records.len();
    let heard = story.hears(context, input);
    if story.records.len() > known {
        advance(story, context);
    }
    heard
}

fn advance(story: &mut QueueStory, context: &Context) {
    loop {
        let by = Context::of_event(context.now, story.last().meta.event_id.clone());
        if story.hears(&by, &QueueInput::Advance) != "assigned" {
            return;
        }
    }
}

/// Who has what, in the order of the queue, and `-` for nobody: `eva d-1 d-2 | - d-3`.
fn picture(story: &QueueStory) -> String {
    let state = story.state();
    let names = |debates: Vec<&QueuedDebate>| {
        debates
            .iter()
            .map(|debate| format!(" {}", debate.entry.debate_id))
            .collect::<String>()
    };
    let experts = state
        .experts
        .keys()
        .map(|name| format!("{name}{}", names(state.held_by(name))));
    let waiting = format!("-{}", names(state.in_order().collect()));
    experts.chain([waiting]).collect::<Vec<_>>().join(" | ")
}

fn refusal(story: &QueueStory, input: &QueueInput) -> Fault {
    match ReviewQueueMachine::decide(story.state(), &said("m-refused", 0), input) {
        Decision::Reject(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// eva and finn, one debate each: d-1 is with eva, d-2 with finn, d-3 waits, d-4 was released.
fn busy() -> QueueStory {
    let mut story = story();
    hears_all(
        &mut story,
        [register("eva", 1, &[]), register("finn", 1, &[])],
    );
    hears_all(
        &mut story,
        [
            enqueue("d-1", USUAL, 1),
            enqueue("d-2", USUAL, 2),
            enqueue("d-3", USUAL, 3),
        ],
    );
    hears_all(&mut story, [enqueue("d-4", USUAL, 4), release("d-4")]);
    assert_eq!(picture(&story), "eva d-1 | finn d-2 | - d-3");
    story
}

#[test]
fn every_cell_of_the_table_of_debates() {
    let inputs = |name: &str| {
        [
            enqueue(name, USUAL, 5),
            QueueInput::Advance,
            give_back(name, "eva"),
            release(name),
            // finn gets room for it.
            reassign(name, "gil"),
        ]
    };
    let (done, not_there) = (
        "ignored: already_done",
        "refused: /payload/parameters/debate_id",
    );
    for (name, row) in [
        ("d-9", ["enqueued", done, done, "released", not_there]),
        ("d-3", [done, done, done, "released", "reassigned"]),
        ("d-1", [done, done, "returned", "released", "reassigned"]),
        ("d-4", [done, done, done, done, not_there]),
    ] {
        for (input, expected) in inputs(name).into_iter().zip(row) {
            let mut story = busy();
            let context = said("m-9", 9);
            if matches!(
                input,
                QueueInput::Reassign { .. } | QueueInput::GiveBack { .. }
            ) {
                // Without advancing, so that there is room.
                story.hears(&said("m-gil", 8), &register("gil", 1, &[]));
            }
            assert_eq!(story.hears(&context, &input), expected, "{name}: {input:?}");
        }
    }
    let mut story = busy();
    story.hears(&said("m-gil", 8), &register("gil", 1, &[]));
    assert_eq!(
        story.hears(&said("m-9", 9), &QueueInput::Advance),
        "assigned"
    );
    assert_eq!(picture(&story), "eva d-1 | finn d-2 | gil d-3 | -");
}

#[test]
fn the_facts_say_what_happened() {
    let mut story = busy();
    let assigned: Vec<_> = story
        .records
        .iter()
        .filter(|record| record.event.name() == "assigned")
        .collect();
    assert_eq!(assigned.len(), 2);
    hears(&mut story, &said("m-9", 1_503), &release("d-2"));
    let ReviewQueueEvent::Assigned(given) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(
        (
            given.debate_id.as_str(),
            given.expert.as_str(),
            given.waited_ms
        ),
        ("d-3", "finn", 1_500)
    );
    assert_eq!(given.case_id, case_id());
    let holder = story.state().debates[&debate("d-3")]
        .holder
        .clone()
        .unwrap();
    assert_eq!(holder.since, after(1_503));
    let released = story
        .records
        .iter()
        .rev()
        .find_map(|record| match &record.event {
            ReviewQueueEvent::Released(released) => Some(released.clone()),
            _ => None,
        });
    let released = released.unwrap();
    assert_eq!(
        (released.expert, released.reason),
        (Some(agent("finn")), ReleaseReason::Ruled)
    );
    assert_eq!(ReviewQueueMachine::case_of(story.last()), None);
    assert!(!ReviewQueueMachine::creates(&QueueInput::Advance));
}

#[test]
fn who_is_given_a_debate_is_notified_where_it_was_registered_last() {
    let at = |mailbox: &str| Contact {
        email: Some(mailbox.into()),
        webhook: None,
    };
    let registered = |mailbox: &str| {
        let expert = Expert {
            contact: at(mailbox),
            ..expert("eva", 1, &[])
        };
        QueueInput::Register(Box::new(ExpertRegistered {
            expert,
            by: agent("olga"),
            follows: 0,
        }))
    };
    let mut story = story();
    hears_all(
        &mut story,
        [registered("old@example.org"), registered("new@example.org")],
    );
    hears_all(&mut story, [enqueue("d-1", DebatePriority::Valuation, 0)]);
    let ReviewQueueEvent::Assigned(given) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(given.contact, at("new@example.org"));
    hears_all(
        &mut story,
        [register("finn", 1, &[]), reassign("d-1", "finn")],
    );
    let given = story
        .records
        .iter()
        .rev()
        .find_map(|record| match &record.event {
            ReviewQueueEvent::Reassigned(given) => Some(given.contact.clone()),
            _ => None,
        });
    assert_eq!(given, Some(Contact::default()));
}

#[test]
fn the_same_message_is_one_fact_and_another_under_its_id_is_refused() {
    let mut story = busy();
    let inputs = [
        register("gil", 2, &["tax"]),
        enqueue("d-8", USUAL, 8),
        reassign("d-1", "gil"),
        release("d-2"),
        leave("finn"),
    ];
    for (place, input) in inputs.iter().enumerate() {
        let context = said(&format!("m-{place}-again"), 10);
        assert!(!story.hears(&context, input).contains(' '), "{input:?}");
        assert_eq!(
            story.hears(&context, input),
            "ignored: repetition",
            "{input:?}"
        );
        for other in inputs.iter().filter(|other| *other != input) {
            assert_eq!(
                story.hears(&context, other),
                "refused: /message_id",
                "{input:?} and then {other:?}"
            );
        }
    }
    let context = said("m-0-again", 10);
    assert_eq!(
        story.hears(&context, &register("gil", 3, &["tax"])),
        "refused: /message_id"
    );
    // A fact under the same id is another cause.
    assert_eq!(
        story.hears(&happened("m-0-again", 10), &register("gil", 3, &["tax"])),
        "expert_registered"
    );
}

#[test]
fn advancing_twice_for_one_fact_assigns_once() {
    let mut story = story();
    story.hears(&said("m-1", 0), &enqueue("d-1", USUAL, 1));
    story.hears(&said("m-2", 0), &enqueue("d-2", USUAL, 2));
    story.hears(&said("m-3", 0), &register("eva", 3, &[]));
    let context = Context::of_event(after(5), story.last().meta.event_id.clone());
    assert_eq!(story.hears(&context, &QueueInput::Advance), "assigned");
    assert_eq!(
        story.hears(&context, &QueueInput::Advance),
        "ignored: repetition"
    );
    assert_eq!(picture(&story), "eva d-1 | - d-2");
    advance(&mut story, &context);
    assert_eq!(picture(&story), "eva d-1 d-2 | -");
}

#[test]
fn what_is_remembered_of_the_finished_is_bounded() {
    let mut state = QueueState::default();
    let mut record = {
        let mut story = story();
        story.hears(&said("m-1", 0), &release("d-1"));
        story.last().clone()
    };
    for number in 0..=FINISHED_MAX {
        record.event = ReviewQueueEvent::Released(concord_events::Released {
            debate_id: debate(&format!("d-{number}")),
            expert: None,
            reason: ReleaseReason::Resolved,
        });
        record.meta.event_id = message(&format!("e-{number}"));
        ReviewQueueMachine::apply(&mut state, record.clone());
    }
    assert_eq!(
        (state.finished.len(), state.causes.len()),
        (FINISHED_MAX, CAUSES_MAX)
    );
    let decide = |name: &str| {
        ReviewQueueMachine::decide(&state, &happened("e", 0), &enqueue(name, USUAL, 0))
    };
    assert_eq!(decide("d-1"), Decision::Ignore(crate::Ignored::AlreadyDone));
    assert!(
        matches!(decide("d-0"), Decision::Append(_)),
        "what is forgotten is unknown"
    );
}
