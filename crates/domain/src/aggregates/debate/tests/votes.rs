//! Positions after answers, and the vote on them.

use concord_wire::payload::DebatePriority;

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

/// The type of ann's answer, how the answer differs from an empty one, and what ann holds then.
type Answered = (
    &'static str,
    &'static str,
    fn(&mut Answer),
    &'static str,
    Option<fn() -> Value>,
);

const ANSWERED: [Answered; 8] = [
    ("keeps", "disagreement", |_| {}, "30", Some(|| json!(30))),
    (
        "joins the one named",
        "agreement",
        |a| a.agrees_with = Some(agent("ben")),
        "60",
        Some(|| json!(60)),
    ),
    (
        "joins nobody in particular of two",
        "agreement",
        |_| {},
        "30",
        Some(|| json!(30)),
    ),
    (
        "says agreement, means not",
        "agreement",
        |a| a.agrees_with_peer = Some(false),
        "30",
        Some(|| json!(30)),
    ),
    (
        "in words that a peer used",
        "revision",
        |a| a.revised_position = Some("\"60\"".into()),
        "\"60\"",
        Some(|| json!(60)),
    ),
    (
        "in words of its own",
        "revision",
        |a| a.revised_position = Some("high".into()),
        "high",
        None,
    ),
    (
        "as a value",
        "revision",
        |a| a.value = Some(json!(41.5)),
        "41.5",
        Some(|| json!(41.5)),
    ),
    (
        "as a text",
        "revision",
        |a| a.value = Some(json!("41")),
        "41",
        Some(|| json!("41")),
    ),
];

#[test]
fn what_a_party_holds_after_its_answer() {
    for (what, kind, change, position, value) in ANSWERED {
        let mut answer = no_answer();
        change(&mut answer);
        let mut story = opened(scores(), policy());
        assert_eq!(
            story.hears(&said("m-1", 1), &answers(given("ann", "m-1", kind, answer))),
            "answered",
            "{what}"
        );
        let held = &story.state().positions[0];
        assert_eq!(
            (held.position.as_str(), held.value.clone()),
            (position, value.map(|value| value())),
            "{what}"
        );
    }
}

#[test]
fn an_agreement_with_nobody_counts_for_nothing() {
    let mut story = opened(scores(), policy());
    let agreeing = |party: &str, id: &str, with: Option<&str>| {
        let agrees_with = with.map(agent);
        let answer = Answer {
            agrees_with,
            ..no_answer()
        };
        answers(given(party, id, "agreement", answer))
    };
    for (id, nobody) in [("m-0", "zoe"), ("m-00", "cyd")] {
        assert_eq!(
            story.hears(&said(id, 1), &agreeing("cyd", id, Some(nobody))),
            "refused: /payload/agrees_with",
            "{nobody}"
        );
    }
    story.hears(&said("m-1", 1), &moves_to("ann", "m-1", json!(60)));
    // The others of each hold different positions.
    story.hears(&said("m-2", 2), &agreeing("ben", "m-2", None));
    assert_eq!(
        story.hears(&said("m-3", 3), &agreeing("cyd", "m-3", None)),
        "round_closed"
    );
    let DebateEvent::RoundClosed(closed) = &story.last().event else {
        panic!("the round is over");
    };
    assert_eq!(closed.record.agreements, 0);
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

#[test]
fn parties_hear_in_the_first_round_what_rests_on_it_and_the_policy_says_whether_that_is_critical() {
    for (critical_where_used, dependants, expected) in [
        (false, vec!["dcf"], DebatePriority::Valuation),
        (true, vec!["dcf"], DebatePriority::CriticalPath),
        (true, Vec::new(), DebatePriority::Valuation),
    ] {
        let mut rules = policy();
        rules.ladder.critical_where_used = critical_where_used;
        let DebateInput::Open(mut opening) = open_debate(scores(), rules) else {
            panic!("a request to open a debate")
        };
        let named: Vec<String> = dependants.iter().map(ToString::to_string).collect();
        opening.prior_knowledge.dependants.clone_from(&named);
        // A name that is there already is not added again.
        opening.request.terms.dependants = named.clone();
        let mut story = DebateStory::of("d-1");
        assert_eq!(
            story.hears(&happened("e-1", 1), &DebateInput::Open(opening)),
            "opened"
        );
        let opened = story.state().opened.clone().unwrap();
        assert_eq!(
            (opened.terms.priority, &opened.terms.dependants),
            (expected, &named)
        );
        for effect in DebateMachine::effects(story.last()) {
            let Effect::AskParty { question, .. } = effect else {
                panic!("{effect:?}")
            };
            assert_eq!(question.dependants, named);
        }
    }
}
