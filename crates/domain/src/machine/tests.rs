use concord_events::{CaseEvent, Origin};
use concord_wire::Token;
use serde_json::json;

use super::*;
use crate::aggregates::case::{CaseMachine, CaseState, Phase};
use crate::fixtures::*;

type CaseStory = Story<CaseMachine>;

fn decided() -> CaseStory {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    story.hears(&said("m-ann", 1), &finding("ann", "m-ann", json!({})));
    story.hears(&said("m-ben", 2), &finding("ben", "m-ben", json!({})));
    story.hears(&happened("e-det", 3), &detected(vec![], vec![]));
    story
}

#[test]
fn a_record_says_what_it_follows_from_and_what_came_before() {
    let story = decided();
    let earlier: Vec<usize> = story
        .records
        .iter()
        .map(|record| record.meta.earlier.len())
        .collect();
    assert_eq!(earlier, [0, 1, 2, 3]);
    assert_eq!(story.last().meta.earlier, story.versioned.sequences[..3]);
    assert_eq!(story.versioned.sequence(), story.last().sequence);
    assert_eq!(
        (story.last().meta.at, story.last().meta.cause.as_str()),
        (after(3), "e-det")
    );
}

#[test]
fn opened_and_closed_deadlines_are_those_that_changed() {
    let story = decided();
    let names = |names: &[Token]| {
        names
            .iter()
            .map(|name| name.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let changes: Vec<_> = story
        .records
        .iter()
        .map(|record| (names(&record.meta.opened), names(&record.meta.closed)))
        .collect();
    let none: Vec<String> = vec![];
    assert_eq!(
        changes,
        [
            (vec!["findings".to_owned(), "case".to_owned()], none.clone()),
            (none.clone(), none.clone()),
            (none.clone(), vec!["findings".to_owned()]),
            (none, vec!["case".to_owned()]),
        ]
    );
}

#[test]
fn the_same_cause_gives_the_same_event_id_and_a_message_is_no_fact() {
    let story = decided();
    let event = || story.last().event.clone();
    let of = |id: &str, context: &Context| {
        story
            .versioned
            .record(&token(id), context, event())
            .meta
            .event_id
    };
    let one = of("c-1", &happened("x", 1));
    assert_eq!(one, of("c-1", &happened("x", 2)), "time does not matter");
    for other in [
        of("c-1", &happened("y", 1)),
        of("c-2", &happened("x", 1)),
        of("c-1", &said("x", 1)),
    ] {
        assert_ne!(one, other);
    }
    assert_eq!(
        (said("x", 1).origin, happened("x", 1).origin),
        (Origin::Message, Origin::Event)
    );
}

#[test]
fn a_reload_may_overlap() {
    let story = decided();
    let mut versioned = Versioned::<CaseMachine>::default();
    for record in story.records.iter().chain(&story.records[..2]) {
        versioned.apply(record.clone());
    }
    assert_eq!(versioned.sequences, story.versioned.sequences);
    assert_eq!(versioned.state, story.versioned.state);
    assert_eq!(Versioned::<CaseMachine>::default().sequence(), 0);
}

#[test]
fn recording_does_not_change_the_state_it_starts_from() {
    let mut story = CaseStory::of("c-1");
    let context = said("m-open", 0);
    let Decision::Append(event) =
        CaseMachine::decide(story.state(), &context, &open_case(&["ann"], policy()))
    else {
        panic!()
    };
    let record = story.versioned.record(&story.id, &context, event);
    assert_eq!((record.sequence, story.state()), (0, &CaseState::default()));
    assert!(matches!(record.event, CaseEvent::Opened(_)));
    story.hears(&context, &open_case(&["ann"], policy()));
    assert_eq!(story.state().phase, Phase::Collecting);
}

#[test]
fn only_opening_creates() {
    assert!(CaseMachine::creates(&open_case(&["ann"], policy())));
    assert!(!CaseMachine::creates(&finding("ann", "m-1", json!({}))));
}

#[test]
fn every_reason_to_ignore_has_a_label_of_its_own() {
    let labels = [
        Ignored::Repetition,
        Ignored::AlreadyDone,
        Ignored::DeadlineNotOpen,
    ]
    .map(Ignored::as_str);
    let different: std::collections::BTreeSet<_> = labels.into_iter().collect();
    assert_eq!(different.len(), labels.len());
}
