//! Confirmations that count, in the debate about what was confirmed.

use super::*;

/// ann holds 30 with a confidence of 0.8, which two confirmations have made 0.902; ben holds 60.
fn confirmed() -> DebateStory {
    let held = [("ann", json!(30), 0.902), ("ben", json!(60), 0.7)];
    let kind = ConflictType::RiskScoreDisagreement;
    let scores = conflict("d-1", kind, "risk_score", &held);
    let mut input = open_debate(scores, policy());
    let DebateInput::Open(opening) = &mut input else {
        panic!("it opens a debate");
    };
    let confirmed = &mut opening.request.terms.confirmed;
    confirmed.insert(agent("ann"), 0.51);
    let mut story = DebateStory::of("d-1");
    assert_eq!(story.hears(&said("c-1-5-0", 0), &input), "opened");
    story
}

fn says(value: Option<i32>, confidence: Option<f64>) -> Answer {
    Answer {
        value: value.map(|value| json!(value)),
        confidence,
        ..no_answer()
    }
}

#[test]
fn a_confirmation_counts_for_as_long_as_its_author_holds_the_position() {
    for (given_by_ann, expected) in [
        // Its own confidence is that of before, or less: what was confirmed is as sure as it was, or less.
        (says(None, Some(0.8)), 0.902),
        (says(Some(30), Some(0.6)), 0.804),
        (says(None, None), 0.902),
        // As it was shown, and more than that.
        (says(None, Some(0.902)), 0.902),
        (says(None, Some(0.9)), 0.902),
        (says(None, Some(0.95)), 0.95),
        // What nobody has confirmed is as sure as ann is.
        (says(Some(40), Some(0.6)), 0.6),
        (says(Some(40), Some(0.902)), 0.902),
        (says(Some(40), None), 0.8),
    ] {
        let mut story = confirmed();
        let answer = given("ann", "m-1", "revision", given_by_ann.clone());
        assert_eq!(story.hears(&said("m-1", 1), &answers(answer)), "answered");
        let ann = story.state().positions[0].confidence;
        assert_eq!(ann, expected, "{given_by_ann:?}");
    }
}

#[test]
fn whoever_comes_back_to_what_was_confirmed_has_its_confirmations_again() {
    let mut story = confirmed();
    for (round, value, expected) in [(1, 40, 0.8), (2, 30, 0.902)] {
        let id = format!("m-ann-{round}");
        let answer = given("ann", &id, "revision", says(Some(value), Some(0.8)));
        story.hears(&said(&id, round), &answers(answer));
        assert_eq!(story.state().positions[0].confidence, expected, "{value}");
        let id = format!("m-ben-{round}");
        story.hears(&said(&id, round), &keeps("ben", &id));
    }
    let sure = &story.state().outcome.as_ref().unwrap().positions[0];
    assert_eq!(sure.confidence, 0.902);
}

#[test]
fn whoever_takes_over_what_was_confirmed_is_as_sure_as_it_says() {
    let mut story = confirmed();
    let joins = Answer {
        agrees_with: Some(agent("ann")),
        ..says(None, Some(0.5))
    };
    let answer = answers(given("ben", "m-1", "agreement", joins));
    story.hears(&said("m-1", 1), &answer);
    assert_eq!(story.state().positions[1].confidence, 0.5);
}
