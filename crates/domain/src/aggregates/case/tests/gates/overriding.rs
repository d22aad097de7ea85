//! What may be put in the place of a provisional decision.

use super::*;

/// An override of a debate by these words, and a value where there is one.
fn overrides(id: &str, debate: &DebateId, said: &serde_json::Value) -> CaseInput {
    let input = reviews(
        "gail",
        id,
        "valuation",
        ReviewAction::Override,
        Some(debate),
    );
    let CaseInput::Review(mut received) = input else {
        panic!("a review")
    };
    received.review.position = said["position"].as_str().map(str::to_owned);
    received.review.value = said.get("value").cloned();
    CaseInput::Review(received)
}

/// Once an override has counted nobody can add a value to it.
#[test]
fn words_that_state_no_value_are_refused_and_may_be_said_again_with_one() {
    let (mut story, debate) = at_gate(policy());
    let words = json!({ "position": "as the management has said" });
    let refused = refusal(&story, &overrides("g-0", &debate, &words));
    assert!(
        refused.contains("Give a number from 0 to 100 as `value`"),
        "{refused}"
    );
    let valued = json!({ "position": "as the management has said", "value": 28 });
    for (id, said_so, expected) in [
        ("g-1", words, "refused: /payload/value"),
        ("g-2", valued, "gate_reviewed"),
    ] {
        let input = overrides(id, &debate, &said_so);
        assert_eq!(story.hears(&said(id, 60), &input), expected, "{id}");
    }
}

/// The override that the specification prints, beside 25 % and 30 %.
#[test]
fn a_quantity_in_a_sentence_wants_its_value_beside_it() {
    let challenge = |metric: &str| {
        let CaseInput::Challenge(mut received) = challenges("strategy", "m-c", "finance") else {
            panic!("a challenge")
        };
        received.challenge.metric = Some(metric.into());
        received.challenge.disputed_finding = "25% operating margin".into();
        received.challenge.position = Some("30% operating margin".into());
        received.challenge.value = None;
        CaseInput::Challenge(received)
    };
    let mut story = opened(&["valuation"], policy());
    let found = json!({ "summary": "25% operating margin" });
    story.hears(&said("m-1", 1), &finding("finance", "m-1", found));
    story.hears(&said("m-c", 2), &challenge("operating margin"));
    story.hears(&said("m-2", 3), &finding("strategy", "m-2", json!({})));
    story.hears(&happened("e-d", 4), &detected(vec![], vec![]));
    let debate = story.state().debated[0].conflict_id.clone();
    ends(&mut story, "e-1", &debate, Status::Provisional);
    let words = json!({ "position": "Use 28% based on management guidance" });
    let valued = json!({ "position": "Use 28% based on management guidance", "value": 28 });
    for (id, said_so, expected) in [
        ("g-1", words, "refused: /payload/value"),
        ("g-2", valued, "gate_reviewed"),
    ] {
        let input = overrides(id, &debate, &said_so);
        assert_eq!(story.hears(&said(id, 60), &input), expected, "{id}");
    }
}
