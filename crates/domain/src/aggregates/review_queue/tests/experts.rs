//! Registering and leaving, and what operators do.

use std::sync::Arc;

use concord_wire::ErrorCode;

use super::*;
use crate::rules::size_budget::WHY_BYTES_MAX;

#[test]
fn an_expert_who_leaves_returns_their_debates_to_their_places() {
    let mut story = story();
    hears_all(&mut story, [register("eva", 3, &[])]);
    hears_all(
        &mut story,
        [
            enqueue("d-2", USUAL, 2),
            enqueue("d-9", USUAL, 9),
            enqueue("d-5", URGENT, 5),
        ],
    );
    hears_all(
        &mut story,
        [enqueue("d-3", USUAL, 3), enqueue("d-6", URGENT, 6)],
    );
    assert_eq!(picture(&story), "eva d-5 d-2 d-9 | - d-6 d-3");
    hears_all(&mut story, [leave("eva")]);
    let ReviewQueueEvent::ExpertLeft(left) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(left.returned, ["d-2", "d-5", "d-9"].map(debate));
    assert_eq!((left.by.as_str(), left.why.as_str()), ("olga", "holiday"));
    assert_eq!(
        picture(&story),
        "- d-5 d-6 d-2 d-3 d-9",
        "each at the place that it had"
    );
    hears_all(&mut story, [register("finn", 1, &[])]);
    assert_eq!(picture(&story), "finn d-5 | - d-6 d-2 d-3 d-9");
}

#[test]
fn who_has_not_registered_cannot_leave() {
    let fault = refusal(&busy(), &leave("gil"));
    assert_eq!(
        (fault.code, fault.pointer.as_str()),
        (ErrorCode::InvalidRequest, "/payload/parameters/agent_id")
    );
    let mut story = busy();
    hears_all(&mut story, [leave("eva"), leave("finn")]);
    assert_eq!(picture(&story), "- d-1 d-2 d-3");
    assert_eq!(
        story.hears(&said("m-x", 0), &leave("eva")),
        "refused: /payload/parameters/agent_id"
    );
}

#[test]
fn registering_again_replaces_and_keeps_debates() {
    let mut story = busy();
    hears_all(&mut story, [register("eva", 2, &["Tax Law "])]);
    assert_eq!(picture(&story), "eva d-1 d-3 | finn d-2 | -");
    let entry = &story.state().experts[&agent("eva")];
    assert_eq!(
        (entry.expert.capacity, entry.domains.contains("tax law")),
        (2, true)
    );
}

#[test]
fn a_smaller_capacity_takes_nothing_away_and_gives_nothing_until_there_is_room() {
    let mut story = story();
    hears_all(&mut story, [register("eva", 3, &[])]);
    hears_all(
        &mut story,
        ["d-1", "d-2", "d-3", "d-4"].map(|name| enqueue(name, USUAL, 1)),
    );
    hears_all(&mut story, [register("eva", 1, &[])]);
    assert_eq!(picture(&story), "eva d-1 d-2 d-3 | - d-4");
    hears_all(&mut story, [release("d-1"), release("d-3")]);
    assert_eq!(picture(&story), "eva d-2 | - d-4", "one of one");
    hears_all(&mut story, [release("d-2")]);
    assert_eq!(picture(&story), "eva d-4 | -");
}

#[test]
fn an_expert_who_makes_no_sense_is_refused_at_the_place() {
    for (input, pointer) in [
        (register("eva", 0, &[]), "/payload/parameters/capacity"),
        (register("eva", 101, &[]), "/payload/parameters/capacity"),
        (
            register("eva", 1, &["tax", " "]),
            "/payload/parameters/domains/1",
        ),
    ] {
        assert_eq!(refusal(&story(), &input).pointer, pointer);
    }
}

#[test]
fn there_are_so_many_experts_at_most() {
    let mut story = story();
    for number in 0..EXPERTS_MAX {
        let input = register(&format!("e-{number}"), 1, &[]);
        let record = match ReviewQueueMachine::decide(
            story.state(),
            &said(&format!("m-{number}"), 0),
            &input,
        ) {
            Decision::Append(event) => {
                story
                    .versioned
                    .record(&id(), &said(&format!("m-{number}"), 0), event)
            }
            other => panic!("{other:?}"),
        };
        ReviewQueueMachine::apply(Arc::make_mut(&mut story.versioned.state), record);
    }
    let fault = refusal(&story, &register("one-more", 1, &[]));
    assert_eq!(
        (fault.code, fault.pointer.as_str()),
        (ErrorCode::CapacityExceeded, "/payload/parameters")
    );
    assert_eq!(
        story.hears(&said("m-x", 0), &register("e-7", 2, &[])),
        "expert_registered",
        "who is known may change"
    );
}

#[test]
fn an_operator_gives_a_debate_to_whom_they_choose() {
    // gil does not know the domain, and d-3 is not the first: it is the operator's choice.
    let mut story = story();
    hears_all(
        &mut story,
        [
            register("eva", 1, &["tax"]),
            enqueue("d-1", URGENT, 1),
            enqueue("d-2", URGENT, 2),
        ],
    );
    hears_all(
        &mut story,
        [enqueue_as(Enqueued {
            domain: Some("tax".into()),
            ..entry("d-3", USUAL, 3)
        })],
    );
    assert_eq!(
        story.hears(&said("m-gil", 8), &register("gil", 1, &[])),
        "expert_registered"
    );
    assert_eq!(
        story.hears(&said("m-1", 9), &reassign("d-3", "gil")),
        "reassigned"
    );
    let ReviewQueueEvent::Reassigned(given) = &story.last().event else {
        panic!()
    };
    assert_eq!(
        (given.from.clone(), given.to.as_str(), given.by.as_str()),
        (None, "gil", "olga")
    );
    assert_eq!(picture(&story), "eva d-1 | gil d-3 | - d-2");
    hears_all(&mut story, [register("gil", 2, &[])]);
    assert_eq!(picture(&story), "eva d-1 | gil d-2 d-3 | -");
    hears_all(
        &mut story,
        [register("eva", 2, &[]), reassign("d-2", "eva")],
    );
    let ReviewQueueEvent::Reassigned(given) = &story.last().event else {
        panic!()
    };
    assert_eq!(given.from, Some(agent("gil")));
    assert_eq!(picture(&story), "eva d-1 d-2 | gil d-3 | -");
}

/// A debate, an expert, and the code, the field and the reason with which the reassignment is
/// refused.
const REFUSED: [(&str, &str, ErrorCode, &str, &str); 6] = [
    (
        "d-9",
        "gil",
        ErrorCode::InvalidRequest,
        "debate_id",
        "d-9 neither waits",
    ),
    (
        "d-4",
        "gil",
        ErrorCode::InvalidRequest,
        "debate_id",
        "d-4 neither waits",
    ),
    (
        "d-1",
        "hana",
        ErrorCode::InvalidRequest,
        "to",
        "hana is not registered",
    ),
    (
        "d-5",
        "gil",
        ErrorCode::Unauthorized,
        "to",
        "gil takes part in d-5",
    ),
    (
        "d-1",
        "eva",
        ErrorCode::InvalidRequest,
        "to",
        "eva has d-1 already",
    ),
    (
        "d-1",
        "finn",
        ErrorCode::CapacityExceeded,
        "to",
        "finn has 1 debates, and a capacity of 1",
    ),
];

#[test]
fn a_reassignment_that_cannot_be_is_refused_with_a_reason() {
    let mut story = busy();
    hears_all(&mut story, [register("gil", 1, &[]), release("d-3")]);
    let excluded = Enqueued {
        excluded: vec![agent("gil")],
        ..entry("d-5", USUAL, 5)
    };
    hears_all(&mut story, [enqueue_as(excluded)]);
    assert_eq!(picture(&story), "eva d-1 | finn d-2 | gil | - d-5");
    let check = |input: &QueueInput, code, field, part| {
        let fault = refusal(&story, input);
        assert_eq!(
            (fault.code, fault.pointer),
            (code, format!("/payload/parameters/{field}"))
        );
        assert!(
            fault.message.contains(part) && fault.advice.ends_with('.'),
            "{}",
            fault.message
        );
    };
    for (of, to, code, field, part) in REFUSED {
        check(&reassign(of, to), code, field, part);
    }
    let why = |why: &str| QueueInput::Reassign {
        debate_id: debate("d-1"),
        to: agent("gil"),
        by: agent("olga"),
        why: why.into(),
    };
    let long = "x".repeat(WHY_BYTES_MAX + 1);
    check(&why(" "), ErrorCode::InvalidRequest, "why", "No reason");
    check(
        &why(&long),
        ErrorCode::CapacityExceeded,
        "why",
        "1025 bytes",
    );
    assert_eq!(
        story.hears(&said("m-x", 0), &reassign("d-1", "gil")),
        "reassigned"
    );
}

#[test]
fn facts_are_decided_again_and_what_was_not_decided_so_is_found() {
    let mut story = busy();
    hears_all(
        &mut story,
        [
            register("gil", 1, &[]),
            reassign("d-1", "finn"),
            leave("eva"),
            enqueue("d-7", MINOR, 7),
        ],
    );
    let mut state = QueueState::default();
    for record in &story.records {
        let told = !matches!(record.event, ReviewQueueEvent::Overflowed(_));
        assert_eq!(decide_again(&state, record), Ok(told), "{:?}", record.event);
        assert_eq!(over_capacity(&state, &record.event), None);
        ReviewQueueMachine::apply(&mut state, record.clone());
    }
    let mut story = busy();
    let mut record = story
        .records
        .iter()
        .rfind(|record| record.event.name() == "assigned")
        .unwrap()
        .clone();
    let ReviewQueueEvent::Assigned(assigned) = &mut record.event else {
        panic!()
    };
    (assigned.debate_id, assigned.expert) = (debate("d-3"), agent("eva"));
    record.meta.event_id = message("another");
    assert!(
        decide_again(story.state(), &record)
            .unwrap_err()
            .contains("would not be stored")
    );
    let found = over_capacity(story.state(), &record.event).unwrap();
    assert_eq!(
        found,
        "It gives d-3 to eva, who has 1 with a capacity of 1."
    );
    hears_all(&mut story, [leave("eva"), leave("finn")]);
    assert!(
        over_capacity(story.state(), &record.event)
            .unwrap()
            .contains("not registered")
    );
}

fn of_person(input: QueueInput, sequence: u64, was: bool) -> QueueInput {
    match input {
        QueueInput::Register(registered) => QueueInput::Register(Box::new(ExpertRegistered {
            follows: sequence,
            ..*registered
        })),
        QueueInput::Leave {
            agent_id, by, why, ..
        } => QueueInput::Leave {
            agent_id,
            by,
            why,
            follows: sequence,
            was_expert: was,
        },
        other => other,
    }
}

#[test]
fn the_last_event_of_a_person_counts_in_whatever_order_they_are_heard() {
    let comes = |sequence| of_person(register("eva", 1, &[]), sequence, false);
    let leaves = |sequence, was| of_person(leave("eva"), sequence, was);
    for (inputs, expected, stays) in [
        (
            vec![comes(5), leaves(7, true)],
            vec!["expert_registered", "expert_left"],
            false,
        ),
        (
            vec![leaves(7, true), comes(5)],
            vec!["expert_left", "ignored: already_done"],
            false,
        ),
        (
            vec![comes(9), leaves(7, true)],
            vec!["expert_registered", "ignored: already_done"],
            true,
        ),
        // A reviewer, of whom the queue need not know.
        (vec![leaves(7, false)], vec!["ignored: already_done"], false),
        // An expert of before people were registered.
        (
            vec![register("eva", 1, &[]), leaves(7, false)],
            vec!["expert_registered", "expert_left"],
            false,
        ),
    ] {
        let mut story = story();
        for (place, (input, expected)) in inputs.iter().zip(expected).enumerate() {
            let context = happened(&format!("e-{place}"), 1);
            assert_eq!(story.hears(&context, input), expected, "{inputs:?}");
        }
        let is_expert = story.state().experts.contains_key(&agent("eva"));
        assert_eq!(is_expert, stays, "{inputs:?}");
    }
}
