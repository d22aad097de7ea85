//! When a round settles a conflict.

use Status::{Discussion, Vote};

use super::*;

/// How a debate of one round ends in which these parties hold these scores, these answers come, and
/// then the clock.
fn ended(
    held: &[(&str, Value, f64)],
    rules: Policy,
    given: Vec<DebateInput>,
) -> (Status, Option<Value>) {
    let conflict = conflict(
        "d-1",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        held,
    );
    let mut story = opened(
        conflict,
        Policy {
            rounds_max: 1,
            ..rules
        },
    );
    for (place, answer) in given.iter().enumerate() {
        story.hears(&said(&format!("m-{place}"), 1), answer);
    }
    if story.state().outcome.is_none() {
        let due = round_due(&story.id, 1, after(ROUND));
        assert_eq!(story.hears(&happened("e-due", ROUND), &due), "resolved");
    }
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(
        outcome.tally.is_some(),
        outcome.status != Status::Discussion,
        "a vote is held only where talk failed"
    );
    (
        outcome.status,
        outcome.resolution.and_then(|resolution| resolution.value),
    )
}

fn three() -> Vec<(&'static str, Value, f64)> {
    vec![
        ("ann", json!(30), 0.5),
        ("ben", json!(60), 0.7),
        ("cyd", json!(90), 0.6),
    ]
}

/// What each party answers to the question of round 1: `keeps`, the id of the peer it joins, or a
/// value.
fn answers_of(given: &[(&str, &str)]) -> Vec<DebateInput> {
    let answer = |(place, (from, what)): (usize, &(&str, &str))| {
        let id = format!("m-{place}");
        match *what {
            "keeps" => keeps(from, &id),
            peer if ["ann", "ben", "cyd"].contains(&peer) => joins(from, &id, peer),
            value => moves_to(from, &id, serde_json::from_str(value).unwrap()),
        }
    };
    given.iter().enumerate().map(answer).collect()
}

/// What three parties with the positions 30, 60 and 90 answer, and how the debate ends.
const THREE: [(&str, &[(&str, &str)], Status, i32); 11] = [
    ("nobody answers", &[], Vote, 60),
    ("one keeps", &[("ann", "keeps")], Vote, 60),
    (
        "one agrees: the specification's rule would settle this",
        &[("ann", "ben")],
        Vote,
        60,
    ),
    ("two keep", &[("ann", "keeps"), ("ben", "keeps")], Vote, 60),
    (
        "one of two agrees",
        &[("ann", "cyd"), ("ben", "keeps")],
        Discussion,
        90,
    ),
    ("two swap", &[("ann", "ben"), ("ben", "ann")], Vote, 30),
    (
        "all three swap in a ring",
        &[("ann", "ben"), ("ben", "cyd"), ("cyd", "ann")],
        Vote,
        90,
    ),
    (
        "one of three agrees",
        &[("ann", "ben"), ("ben", "keeps"), ("cyd", "keeps")],
        Vote,
        60,
    ),
    (
        "two of three agree with the third",
        &[("ann", "ben"), ("ben", "keeps"), ("cyd", "ben")],
        Discussion,
        60,
    ),
    (
        "two of three agree with each other's peer and one position leads",
        &[("ann", "cyd"), ("ben", "cyd"), ("cyd", "keeps")],
        Discussion,
        90,
    ),
    (
        "all move to the same value without a word of agreement",
        &[("ann", "70"), ("ben", "\"70\""), ("cyd", "70.0")],
        Discussion,
        70,
    ),
];

/// The specification's answers state a position in words.
#[test]
fn a_position_in_words_counts_as_the_value_that_it_states() {
    let in_words = |from: &str, place: usize, words: &str| {
        let answer = Answer {
            revised_position: Some(words.to_owned()),
            ..no_answer()
        };
        answers(given(from, &format!("m-{place}"), "revision", answer))
    };
    let words = ["Risk score: 50", "50", "risk score 50"];
    let said = ["ann", "ben", "cyd"].into_iter().zip(words).enumerate();
    let said = said.map(|(place, (from, words))| in_words(from, place, words));
    assert_eq!(
        ended(&three(), policy(), said.collect()),
        (Discussion, Some(json!(50.0)))
    );
}

/// What is said without a unit is in that of what was held, in words and as a value.
#[test]
fn two_who_say_the_same_quantity_in_different_ways_agree() {
    let percent = |number: u8| json!({ "value": number, "unit": "%" });
    let held = [("ann", percent(25), 0.5), ("ben", percent(35), 0.5)];
    let says = |from: &str, words: Option<&str>, value: Option<Value>| {
        let answer = Answer {
            revised_position: words.map(str::to_owned),
            value,
            ..no_answer()
        };
        answers(given(from, &format!("m-{from}"), "revision", answer))
    };
    for (words, value) in [
        (None, Some(json!(28))),
        (None, Some(json!("28"))),
        (None, Some(json!(0.28))),
        (None, Some(json!("2800 bp"))),
        (Some("28"), None),
        (Some("Operating margin: 28 %"), None),
        (Some("28% operating margin"), None),
        (Some("as guided"), Some(json!(28))),
    ] {
        let kind = ConflictType::EstimateDisagreement;
        let margin = conflict("d-1", kind, "operating margin", &held);
        let mut story = opened(margin, policy());
        story.hears(&said("m-ann", 1), &says("ann", Some("28 %"), None));
        let ben = says("ben", words, value.clone());
        let heard = story.hears(&said("m-ben", 2), &ben);
        assert_eq!(heard, "resolved", "{words:?} {value:?}");
        let outcome = story.state().outcome.clone().unwrap();
        assert_eq!(outcome.status, Discussion, "{words:?} {value:?}");
    }
}

#[test]
fn between_three_parties() {
    for (what, given, status, value) in THREE {
        assert_eq!(
            ended(&three(), policy(), answers_of(given)),
            (status, Some(json!(value))),
            "{what}"
        );
    }
}

#[test]
fn between_two_parties() {
    use Status::{Discussion, Vote};
    let two = || three()[..2].to_vec();
    let table: Vec<(&str, Vec<DebateInput>, Status, i32)> = vec![
        (
            "both keep",
            vec![keeps("ann", "m-0"), keeps("ben", "m-1")],
            Vote,
            60,
        ),
        (
            "one agrees, one keeps",
            vec![joins("ann", "m-0", "ben"), keeps("ben", "m-1")],
            Discussion,
            60,
        ),
        (
            "the only peer need not be named",
            {
                vec![
                    answers(given("ann", "m-0", "agreement", no_answer())),
                    keeps("ben", "m-1"),
                ]
            },
            Discussion,
            60,
        ),
        (
            "both politely adopt the other's",
            vec![joins("ann", "m-0", "ben"), joins("ben", "m-1", "ann")],
            Vote,
            30,
        ),
        (
            "one agrees, the other is silent",
            vec![joins("ann", "m-0", "ben")],
            Vote,
            60,
        ),
    ];
    for (what, given, status, value) in table {
        let (ended_as, chosen) = ended(&two(), policy(), given);
        assert_eq!(ended_as, status, "{what}");
        assert_eq!(chosen, Some(json!(value)), "{what}");
    }
}

#[test]
fn a_lead_must_be_unique() {
    // Four parties, two on each side after the round: agreement without a result.
    let held = [
        ("ann", json!(30), 0.5),
        ("ben", json!(60), 0.7),
        ("cyd", json!(90), 0.6),
        ("dan", json!(60), 0.9),
    ];
    let given = vec![
        joins("ann", "m-0", "cyd"),
        keeps("ben", "m-1"),
        answers(AnswerMessage {
            is_agreement: true,
            ..given(
                "cyd",
                "m-2",
                "agreement",
                Answer {
                    agrees_with: Some(agent("ann")),
                    value: Some(json!(90)),
                    ..no_answer()
                },
            )
        }),
        joins("dan", "m-3", "ben"),
    ];
    let (status, chosen) = ended(&held, policy(), given);
    assert_eq!(
        (status, chosen),
        (Status::Vote, Some(json!(60))),
        "the surer side wins the vote"
    );
}

#[test]
fn more_answers_can_be_asked_for() {
    let one_of_two = || vec![joins("ann", "m-0", "cyd"), keeps("ben", "m-1")];
    assert_eq!(
        ended(
            &three(),
            Policy {
                answers_min: 2,
                ..policy()
            },
            one_of_two()
        )
        .0,
        Status::Discussion
    );
    assert_eq!(
        ended(
            &three(),
            Policy {
                answers_min: 3,
                ..policy()
            },
            one_of_two()
        )
        .0,
        Status::Vote
    );
    // A policy that was never checked must not make it fail.
    assert_eq!(
        ended(
            &three(),
            Policy {
                answers_min: 0,
                ..policy()
            },
            vec![]
        )
        .0,
        Status::Vote
    );
}

#[test]
fn a_rule_that_wants_everyone_may_choose_nothing() {
    let rules = Policy {
        vote_rule: concord_wire::policy::VoteRule::Unanimous,
        ..policy()
    };
    assert_eq!(ended(&three(), rules, vec![]), (Status::Unresolved, None));
}

#[test]
fn a_tie_goes_to_the_cautious_side_even_when_the_weights_are_no_binary_fractions() {
    // 0.6 + 0.3 is less than 0.9 in binary.
    let held = [
        ("ann", json!(90), 0.6),
        ("ben", json!(90), 0.3),
        ("cyd", json!(30), 0.9),
    ];
    assert_eq!(
        ended(&held, policy(), vec![]),
        (Status::Vote, Some(json!(90)))
    );
}

#[test]
fn talk_settles_in_the_second_round_what_it_did_not_in_the_first() {
    let mut story = story(At::Round2);
    story.hears(&said("m-ann-2", 11), &joins("ann", "m-ann-2", "ben"));
    story.hears(&said("m-ben-2", 12), &keeps("ben", "m-ben-2"));
    assert_eq!(
        story.hears(&said("m-cyd-2", 13), &joins("cyd", "m-cyd-2", "ben")),
        "resolved"
    );
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(outcome.status, Status::Discussion);
    assert_eq!(outcome.resolution.unwrap().supporters.len(), 3);
    let agreements: Vec<u32> = outcome
        .rounds
        .iter()
        .map(|round| round.agreements)
        .collect();
    assert_eq!(agreements, [0, 2]);
    assert_eq!(story.last().meta.deadlines, []);
}

/// Whoever agrees with a peer and writes a sentence, and no position, holds the peer's.
#[test]
fn a_sentence_of_who_agrees_is_no_position_of_its_own() {
    let advice = [
        ("ann", json!("reject"), 0.6),
        ("ben", json!("sign"), 0.95),
        ("cyd", json!("sign"), 0.5),
    ];
    let two = &advice[..2];
    for (held, agrees, with, words, expected) in [
        (
            two,
            true,
            None,
            "I agree that we should not sign.",
            "reject",
        ),
        (two, true, None, "Sign.", "sign"),
        (two, true, None, "negotiate", "negotiate"),
        (two, false, None, "sign, if capped", "sign, if capped"),
        (
            &advice,
            true,
            Some("ann"),
            "She is right about it.",
            "reject",
        ),
        // Nobody says whom.
        (&advice, true, None, "They are right.", "they are right"),
    ] {
        let conflict = conflict(
            "d-1",
            ConflictType::RecommendationConflict,
            "recommendation",
            held,
        );
        let mut story = opened(conflict, policy());
        let answer = Answer {
            revised_position: Some(words.into()),
            agrees_with_peer: Some(agrees),
            agrees_with: with.map(agent),
            ..no_answer()
        };
        let sent = given("ben", "m-1", "revision", answer);
        assert_eq!(story.hears(&said("m-1", 1), &answers(sent)), "answered");
        let mut positions = story.state().positions.iter();
        let his = positions.find(|position| position.agent_id == agent("ben"));
        assert_eq!(his.unwrap().value, Some(json!(expected)), "{words}");
    }
    let mut story = opened(scores(), policy());
    let high = Answer {
        revised_position: Some("The peer is right, the risk is high.".into()),
        agrees_with_peer: Some(true),
        agrees_with: Some(agent("cyd")),
        ..no_answer()
    };
    let sent = given("ben", "m-1", "agreement", high);
    story.hears(&said("m-1", 1), &answers(sent));
    let mut positions = story.state().positions.iter();
    let his = positions.find(|position| position.agent_id == agent("ben"));
    assert_eq!(his.unwrap().value, Some(json!(90)));
}
