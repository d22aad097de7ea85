//! Positions after answers, and the vote on them.

use super::*;

#[test]
fn without_rounds_the_vote_follows_from_a_deadline_that_is_due_at_once() {
    let mut story = opened(
        scores(),
        Policy {
            rounds_max: 0,
            ..policy()
        },
    );
    assert_eq!(DebateMachine::effects(story.last()), [], "nobody is asked");
    assert_eq!(
        story.last().meta.deadlines,
        [Deadline {
            name: round_name(1),
            due: start()
        }]
    );
    assert_eq!(
        story.hears(&said("m-1", 0), &keeps("ann", "m-1")),
        "refused: /from_agent"
    );
    let due = round_due(&story.id, 1, start());
    assert_eq!(story.hears(&happened("e-due", 0), &due), "resolved");
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.rounds.len()), (Status::Vote, 0));
    assert_eq!(
        outcome.resolution.unwrap().value,
        Some(json!(60)),
        "ben is the surest"
    );
}

#[test]
fn the_vote_weighs_what_is_held_after_the_rounds() {
    let mut story = opened(
        scores(),
        Policy {
            rounds_max: 1,
            ..policy()
        },
    );
    story.hears(&said("m-1", 1), &moves_to("ann", "m-1", json!(90)));
    story.hears(&said("m-2", 2), &keeps("ben", "m-2"));
    assert_eq!(
        story.hears(&said("m-3", 3), &keeps("cyd", "m-3")),
        "resolved"
    );
    let outcome = story.state().outcome.clone().unwrap();
    let tally = outcome.tally.unwrap();
    assert_eq!(outcome.status, Status::Vote);
    let weights: Vec<(Value, f64)> = tally
        .options
        .iter()
        .map(|option| (option.value.clone().unwrap(), option.weight))
        .collect();
    assert_eq!(weights, [(json!(60), 0.7), (json!(90), 1.1)]);
    assert_eq!(
        outcome.resolution.unwrap().supporters,
        [agent("ann"), agent("cyd")]
    );
    assert_eq!(
        (
            outcome.rounds[0].positions_before,
            outcome.rounds[0].positions_after
        ),
        (3, 2)
    );
}

#[test]
fn what_a_party_holds_after_its_answer() {
    let with = |change: fn(&mut Answer)| {
        let mut answer = no_answer();
        change(&mut answer);
        answer
    };
    let (kept, other) = (("30", Some(json!(30))), ("60", Some(json!(60))));
    type Held = (&'static str, Option<Value>);
    let table: Vec<(&str, &str, Answer, Held)> = vec![
        ("keeps", "disagreement", no_answer(), kept.clone()),
        (
            "joins the one named",
            "agreement",
            with(|a| a.agrees_with = Some(agent("ben"))),
            other.clone(),
        ),
        (
            "joins nobody in particular of two",
            "agreement",
            no_answer(),
            kept.clone(),
        ),
        (
            "names a stranger",
            "agreement",
            with(|a| a.agrees_with = Some(agent("zoe"))),
            kept.clone(),
        ),
        (
            "says agreement, means not",
            "agreement",
            with(|a| a.agrees_with_peer = Some(false)),
            kept.clone(),
        ),
        (
            "in words that a peer used",
            "revision",
            with(|a| a.revised_position = Some("\"60\"".into())),
            ("\"60\"", Some(json!(60))),
        ),
        (
            "in words of its own",
            "revision",
            with(|a| a.revised_position = Some("high".into())),
            ("high", None),
        ),
        (
            "as a value",
            "revision",
            with(|a| a.value = Some(json!(41.5))),
            ("41.5", Some(json!(41.5))),
        ),
        (
            "as a text",
            "revision",
            with(|a| a.value = Some(json!("41"))),
            ("41", Some(json!("41"))),
        ),
    ];
    for (what, kind, answer, (position, value)) in table {
        let mut story = opened(scores(), policy());
        assert_eq!(
            story.hears(&said("m-1", 1), &answers(given("ann", "m-1", kind, answer))),
            "answered",
            "{what}"
        );
        let held = &story.state().positions[0];
        assert_eq!(
            (held.position.as_str(), &held.value),
            (position, &value),
            "{what}"
        );
    }
}

#[test]
fn confidence_and_evidence_of_an_answer() {
    let mut story = opened(scores(), policy());
    let evidence = |quotes: &[&str]| {
        quotes
            .iter()
            .map(|quote| (*quote).to_owned())
            .collect::<Vec<_>>()
    };
    let answer = Answer {
        confidence: Some(0.9),
        evidence: evidence(&["§ 2"]),
        ..no_answer()
    };
    let envelope = AnswerMessage {
        confidence: Some(0.1),
        ..given("ann", "m-1", "revision", answer)
    };
    story.hears(&said("m-1", 1), &answers(envelope));
    let only_envelope = AnswerMessage {
        confidence: Some(0.2),
        ..given("ben", "m-2", "revision", no_answer())
    };
    story.hears(&said("m-2", 2), &answers(only_envelope));
    story.hears(&said("m-3", 3), &keeps("cyd", "m-3"));
    let confidence: Vec<f64> = story
        .state()
        .positions
        .iter()
        .map(|held| held.confidence)
        .collect();
    assert_eq!(
        confidence,
        [0.9, 0.2, 0.6],
        "the answer's, else the envelope's, else the earlier"
    );
    let again = Answer {
        evidence: evidence(&["§ 3", "§ 2"]),
        ..no_answer()
    };
    story.hears(
        &said("m-4", 4),
        &answers(given("ann", "m-4", "revision", again)),
    );
    assert_eq!(
        story.state().positions[0].evidence,
        evidence(&["§ 3", "§ 2"]),
        "new before old, none twice"
    );
}
