//! Whoever disagrees in a sentence that is no position keeps what it held.

use super::*;
use crate::assurance::replay::recount;

const SENTENCE: &str = "I maintain my position";

fn says(party: &str, id: &str, (kind, words): (&str, &str)) -> DebateInput {
    let answer = Answer {
        revised_position: Some(words.into()),
        ..no_answer()
    };
    answers(given(party, id, kind, answer))
}

fn of(kind: ConflictType, subject: &str, held: &[(&str, Value, f64)]) -> Conflict {
    conflict("d-1", kind, subject, held)
}

/// What ben holds after these words.
fn held_after(conflict: Conflict, said_so: (&str, &str)) -> (String, Option<Value>) {
    let mut story = opened(conflict, policy());
    story.hears(&said("m-1", 1), &says("ben", "m-1", said_so));
    let mut positions = story.state().positions.iter();
    let his = positions.find(|position| position.agent_id == agent("ben"));
    let his = his.unwrap();
    (his.position.clone(), his.value.clone())
}

#[test]
fn a_disagreement_in_words_keeps_the_position_unless_they_name_one() {
    let recommendations = [("ann", json!("sign"), 0.6), ("ben", json!("reject"), 0.6)];
    let margins = [("ann", json!("25 %"), 0.6), ("ben", json!("30 %"), 0.6)];
    let score = || scores();
    let advice = || {
        let kind = ConflictType::RecommendationConflict;
        of(kind, "recommendation", &recommendations)
    };
    let margin = || of(ConflictType::EstimateDisagreement, "margin", &margins);
    for (conflict, kind, words, expected) in [
        (score(), "disagreement", SENTENCE, Some(json!(60))),
        (score(), "disagreement", "Risk score: 50", Some(json!(50.0))),
        (score(), "revision", SENTENCE, None),
        (advice(), "disagreement", SENTENCE, Some(json!("reject"))),
        (
            advice(),
            "disagreement",
            "negotiate",
            Some(json!("negotiate")),
        ),
        (advice(), "disagreement", "Sign", Some(json!("sign"))),
        (
            advice(),
            "revision",
            "wait a week",
            Some(json!("wait a week")),
        ),
        (margin(), "disagreement", SENTENCE, Some(json!("30 %"))),
    ] {
        let what = format!("{} {kind}: {words}", conflict.subject);
        let (position, value) = held_after(conflict, (kind, words));
        assert_eq!(value, expected, "{what}");
        let is_as_said = position == words;
        let keeps = kind == "disagreement" && words == SENTENCE;
        assert_eq!(is_as_said, !keeps, "{what}");
    }
}

#[test]
fn the_votes_of_those_who_maintain_their_position_count_together() {
    let held = [
        ("ann", json!(20), 0.7),
        ("ben", json!(80), 0.6),
        ("cyd", json!(80), 0.6),
    ];
    let rules = Policy {
        rounds_max: 1,
        ..policy()
    };
    let kind = ConflictType::RiskScoreDisagreement;
    let mut story = opened(of(kind, "risk_score", &held), rules);
    story.hears(&said("m-1", 1), &keeps("ann", "m-1"));
    for (id, party) in [("m-2", "ben"), ("m-3", "cyd")] {
        let answer = says(party, id, ("disagreement", SENTENCE));
        story.hears(&said(id, 2), &answer);
    }
    let outcome = story.state().outcome.clone().unwrap();
    assert_eq!(outcome.resolution.unwrap().value, Some(json!(80)));
    assert_eq!(recount::<DebateMachine>(&story.records), vec![]);
}
