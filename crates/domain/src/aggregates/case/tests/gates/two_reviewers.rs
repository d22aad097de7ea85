//! What the second of two reviewers must say.

use concord_wire::payload::RuledBy;

use super::roles::reviewer;
use super::*;
use crate::aggregates::case::{PassedGate, gates_passed};
use crate::aggregates::person::Authority;

fn dual() -> Policy {
    let mut policy = policy();
    policy.ladder.reviewers_min = 2;
    policy
}

#[test]
fn two_reviewers_must_say_the_same() {
    let (mut story, debate) = at_gate(dual());
    let mut number = 0;
    let mut hears = |by: &str, action, debate: Option<&DebateId>| {
        number += 1;
        let id = format!("m-{number}-r");
        let review = reviews(by, &id, "valuation", action, debate);
        story.hears(&said(&id, 60 + number), &review)
    };
    let about = Some(&debate);
    for (by, action, expected) in [
        ("gail", ReviewAction::Confirm, "review_recorded"),
        // The same again is no second reviewer.
        ("gail", ReviewAction::Confirm, "refused: /from_agent"),
        // Another one wants something else.
        ("hal", ReviewAction::Override, "review_recorded"),
        // The first one is convinced.
        ("gail", ReviewAction::Override, "gate_reviewed"),
    ] {
        assert_eq!(hears(by, action, about), expected, "{by} {action:?}");
    }
    let passes = ReviewAction::Pass;
    assert_eq!(hears("hal", passes, None), "review_recorded");
    assert_eq!(hears("hal", passes, None), "refused: /from_agent");
    assert_eq!(hears("gail", passes, None), "gate_passed");
    assert!(story.state().first_reviews.is_empty());
    // Both are named, whoever came second.
    let named = story
        .records
        .iter()
        .filter_map(|record| match &record.event {
            CaseEvent::GateReviewed(one) => Some((&one.first_reviewer, &one.heard.agent_id)),
            CaseEvent::GatePassed(one) => Some((&one.first_reviewer, &one.heard.agent_id)),
            _ => None,
        });
    let both = (&Some(agent("hal")), &agent("gail"));
    assert_eq!(named.collect::<Vec<_>>(), [both, both]);
    let reasons = story
        .records
        .iter()
        .filter_map(|record| match &record.event {
            CaseEvent::GateReviewed(one) => one.first_rationale.as_deref(),
            _ => None,
        });
    assert_eq!(reasons.collect::<Vec<_>>(), ["Guidance."]);
    let [passed] = <[PassedGate; 1]>::try_from(gates_passed(&story.records)).unwrap();
    assert_eq!(
        (passed.first_reviewer, passed.by),
        (Some(agent("hal")), agent("gail"))
    );
    assert_eq!(passed.first_rationale.as_deref(), Some("Guidance."));
    assert_eq!(passed.rationale, "Guidance.");
    // The next gate needs two again.
    let next = reviews("gail", "m-next", "release", passes, None);
    assert_eq!(story.hears(&said("m-next", 90), &next), "review_recorded");
}

#[test]
fn the_second_reviewer_is_heard_whoever_has_used_their_id() {
    let (mut story, debate) = at_gate(dual());
    for (by, expected) in [("gail", "review_recorded"), ("hal", "gate_reviewed")] {
        let review = reviews(by, "m-r", "valuation", ReviewAction::Confirm, Some(&debate));
        let context = said("m-r", 60).of_sender(agent(by));
        assert_eq!(story.hears(&context, &review), expected, "{by}");
    }
    assert!(story.has_one_id_each());
}

/// What a reader of the log and of the changes sees; the version before knows no first reviewer, and its hashes are the same.
#[test]
fn the_log_and_the_change_of_the_decision_name_both_reviewers() {
    let (mut story, debate) = at_gate(dual());
    let overridden = ConflictOutcome {
        status: Status::Overridden,
        provisional: None,
        ruled_by: Some(RuledBy {
            expert: agent("hal"),
            first_reviewer: Some(agent("gail")),
            first_rationale: None,
            rationale: "Guidance.".into(),
            digest: None,
            key: None,
        }),
        ..ended(&story, &debate, Status::Provisional)
    };
    let resolved = CaseInput::Resolved(Box::new(overridden));
    story.hears(&happened("e-3", 66), &resolved);
    let CaseEvent::DecisionChanged(changed) = &story.last().event else {
        panic!("{:?}", story.last().event);
    };
    let both = (Some(agent("gail")), Some(agent("hal")));
    let (entry, change) = (&changed.entry, &changed.change);
    assert_eq!((entry.first_reviewer.clone(), entry.by.clone()), both);
    assert_eq!((change.first_reviewer.clone(), change.by.clone()), both);
    let mut before = serde_json::to_value(entry).unwrap();
    before.as_object_mut().unwrap().remove("first_reviewer");
    let before: concord_wire::payload::LogEntry = serde_json::from_value(before).unwrap();
    assert_eq!(before.computed_hash(), entry.hash);
}

#[test]
fn who_may_not_review_any_more_is_not_one_of_the_two() {
    let suspended = Authority {
        suspended: Some("left the firm".into()),
        ..reviewer("gail", &[], &[])
    };
    for (gail, expected) in [
        (suspended, "review_recorded"),
        (authority("gail", &[Role::Arbiter]), "review_recorded"),
        (reviewer("gail", &["release"], &[]), "review_recorded"),
        (reviewer("gail", &[], &[]), "gate_reviewed"),
    ] {
        let (mut story, debate) = at_gate(dual());
        let confirms = |by, id| reviews(by, id, "valuation", ReviewAction::Confirm, Some(&debate));
        let first = confirms("gail", "m-1r");
        assert_eq!(story.hears(&said("m-1r", 60), &first), "review_recorded");
        let CaseInput::Review(mut second) = confirms("hal", "m-2r") else {
            panic!("a review")
        };
        second.first.insert(agent("gail"), gail);
        let second = CaseInput::Review(second);
        assert_eq!(story.hears(&said("m-2r", 61), &second), expected);
        if expected == "review_recorded" {
            let third = confirms("ida", "m-3r");
            assert_eq!(story.hears(&said("m-3r", 62), &third), "gate_reviewed");
        }
    }
}

#[test]
fn who_has_challenged_since_is_not_one_of_the_two() {
    let (mut story, debate) = at_gate(dual());
    let confirms = |by, id| reviews(by, id, "valuation", ReviewAction::Confirm, Some(&debate));
    let mut hears = |id: &str, input: &CaseInput| story.hears(&said(id, 60), input);
    assert_eq!(hears("m-1r", &confirms("gail", "m-1r")), "review_recorded");
    let challenge = challenges("gail", "m-g", "finance");
    assert_eq!(hears("m-g", &challenge), "challenged");
    assert_eq!(hears("m-2r", &confirms("hal", "m-2r")), "review_recorded");
    assert_eq!(hears("m-3r", &confirms("ida", "m-3r")), "gate_reviewed");
}

#[test]
fn overriding_with_another_value_is_not_the_same() {
    let (mut story, debate) = at_gate(dual());
    let over = |by: &str, id: &str, value: serde_json::Value| {
        let input = reviews(by, id, "valuation", ReviewAction::Override, Some(&debate));
        let CaseInput::Review(mut received) = input else {
            panic!("a review")
        };
        received.review.position = Some(value.to_string());
        received.review.value = Some(value);
        received.review.rationale = format!("the reason of {by}");
        CaseInput::Review(received)
    };
    for (by, id, value, expected) in [
        ("gail", "m-0r", json!("abc"), "refused: /payload/value"),
        ("gail", "m-1r", json!(28), "review_recorded"),
        ("hal", "m-2r", json!(29), "review_recorded"),
        ("ida", "m-3r", json!(28), "gate_reviewed"),
    ] {
        assert_eq!(story.hears(&said(id, 60), &over(by, id, value)), expected);
    }
}

/// A review of a debate with what it overrides it with, or what the parties did not know before.
fn saying(by: &str, id: &str, debate: &DebateId, said: &serde_json::Value) -> CaseInput {
    let action = match said["context"].is_null() {
        true => ReviewAction::Override,
        false => ReviewAction::Redebate,
    };
    let CaseInput::Review(mut received) = reviews(by, id, "valuation", action, Some(debate)) else {
        panic!("a review")
    };
    let text = |field: &str| said[field].as_str().map(str::to_owned);
    received.review.position = text("position");
    received.review.value = said.get("value").cloned();
    received.review.context = text("context");
    CaseInput::Review(received)
}

#[test]
fn the_same_words_and_the_same_value_are_the_same() {
    let score = "Risk score: 40";
    for (first, second, is_same) in [
        (
            json!({"position": score, "value": 40}),
            json!({"position": score, "value": 40.0}),
            true,
        ),
        (
            json!({"position": score, "value": 40}),
            json!({"position": "risk score:  40."}),
            true,
        ),
        (
            json!({"position": score}),
            json!({"position": score, "value": "40"}),
            true,
        ),
        (json!({"position": score}), json!({"position": "40"}), true),
        (
            json!({"position": score, "value": 40}),
            json!({"position": "Risk score: 41", "value": 41}),
            false,
        ),
        // Nobody puts other words in the place of the first one's.
        (
            json!({"position": "Risk score: 5", "value": 5}),
            json!({"position": "the contract is void", "value": 5}),
            false,
        ),
    ] {
        let (mut story, debate) = at_gate(dual());
        let one = saying("gail", "m-1r", &debate, &first);
        assert_eq!(story.hears(&said("m-1r", 60), &one), "review_recorded");
        let other = saying("hank", "m-2r", &debate, &second);
        let expected = ["review_recorded", "gate_reviewed"][usize::from(is_same)];
        assert_eq!(
            story.hears(&said("m-2r", 61), &other),
            expected,
            "{first} {second}"
        );
    }
}

#[test]
fn the_parties_are_told_what_both_reviewers_add() {
    for (second, told) in [
        ("the new filing", "The new filing."),
        (
            "The auditor has left.",
            "gail: The new filing.\n\nhank: The auditor has left.",
        ),
    ] {
        let (mut story, debate) = at_gate(dual());
        let adds = |by, id, context: &str| saying(by, id, &debate, &json!({ "context": context }));
        let one = adds("gail", "m-1r", "The new filing.");
        assert_eq!(story.hears(&said("m-1r", 60), &one), "review_recorded");
        let other = adds("hank", "m-2r", second);
        assert_eq!(story.hears(&said("m-2r", 61), &other), "gate_reviewed");
        let again = &story.state().debated[1].conflict_id;
        let context = story.state().asked[again].terms.added_context.as_deref();
        assert_eq!(context, Some(told));
    }
}
