//! What a reviewer has seen, and their signature.

use concord_wire::payload::Signature;

use super::*;
use crate::aggregates::case::digest_of_shown;
use crate::fixtures::person;

/// A review with this digest.
fn seen(input: CaseInput, digest: Option<String>) -> CaseInput {
    match input {
        CaseInput::Review(mut received) => {
            received.review.digest = digest;
            CaseInput::Review(received)
        }
        other => other,
    }
}

fn pass(id: &str) -> CaseInput {
    reviews("gail", id, "valuation", ReviewAction::Pass, None)
}

fn confirm(id: &str, debate: &DebateId) -> CaseInput {
    let action = ReviewAction::Confirm;
    reviews("gail", id, "valuation", action, Some(debate))
}

#[test]
fn a_review_of_something_else_than_what_stands_is_refused_with_what_changed() {
    let (mut story, debate) = at_gate(policy());
    let digest = digest_of_shown(story.state(), Some(&debate));
    let gate = digest_of_shown(story.state(), None);
    let other = seen(confirm("g-1", &debate), Some("f".repeat(64)));
    let fault = refusal(&story, &other);
    assert!(
        fault.contains("now this stands provisionally: 70"),
        "{fault}"
    );
    assert!(fault.contains(digest.as_ref().unwrap()), "{fault}");
    let right = seen(confirm("g-2", &debate), digest);
    assert_eq!(story.hears(&said("g-2", 60), &right), "gate_reviewed");
    let CaseEvent::GateReviewed(reviewed) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert!(reviewed.review.digest.is_some(), "the event keeps it");
    ends(&mut story, "e-2", &debate, Status::Confirmed);
    let fault = refusal(&story, &seen(pass("g-3"), gate.clone()));
    assert!(
        fault.contains("The latest changes: version 2 (confirmed). Read"),
        "{fault}"
    );
    let now = digest_of_shown(story.state(), None);
    assert_ne!(now, gate);
    assert_eq!(
        story.hears(&said("g-4", 70), &seen(pass("g-4"), now.clone())),
        "gate_passed"
    );
    let CaseEvent::GatePassed(passed) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    assert_eq!(passed.review.as_ref().unwrap().digest, now);
    assert_eq!(
        digest_of_shown(story.state(), Some(&debate)),
        None,
        "nothing waits for a review any more"
    );
}

/// Between two reviews the decision may change: then the second one is a first one again.
#[test]
fn two_reviewers_must_have_seen_the_same() {
    let mut rules = policy();
    rules.ladder.reviewers_min = 2;
    rules.ladder.digest_required = true;
    let (mut story, debate) = at_gate(rules);
    ends(&mut story, "e-2", &debate, Status::Confirmed);
    let passes = |story: &mut Story<CaseMachine>, by: &str, id: &str| {
        let now = digest_of_shown(story.state(), None);
        let pass = reviews(by, id, "valuation", ReviewAction::Pass, None);
        story.hears(&said(id, 70), &seen(pass, now))
    };
    assert_eq!(passes(&mut story, "gail", "g-1"), "review_recorded");
    story.hears(
        &said("m-c2", 71),
        &challenges("strategy", "m-c2", "finance"),
    );
    let challenge = story.state().debated.last().unwrap().conflict_id.clone();
    ends(&mut story, "e-3", &challenge, Status::Confirmed);
    assert_eq!(passes(&mut story, "hal", "g-2"), "review_recorded");
    assert_eq!(passes(&mut story, "gail", "g-3"), "gate_passed");
}

#[test]
fn the_policy_may_ask_for_the_digest() {
    let mut rules = policy();
    rules.ladder.digest_required = true;
    let (mut story, debate) = at_gate(rules);
    assert_eq!(
        story.hears(&said("g-1", 60), &confirm("g-1", &debate)),
        "refused: /payload/digest"
    );
    let digest = digest_of_shown(story.state(), Some(&debate));
    let right = seen(confirm("g-2", &debate), digest);
    assert_eq!(story.hears(&said("g-2", 61), &right), "gate_reviewed");
}

#[test]
fn the_policy_may_ask_for_a_signature_with_the_registered_key() {
    let mut rules = policy();
    rules.ladder.signed = true;
    let (mut story, debate) = at_gate(rules);
    let key = "a".repeat(64);
    let signed = |id: &str, key: &str, fits: bool| {
        let CaseInput::Review(mut received) = confirm(id, &debate) else {
            panic!("a review")
        };
        received.review.signature = Some(Signature {
            key: key.to_owned(),
            value: "0".repeat(128),
        });
        received.is_signed = fits;
        let mut gail = person("gail", &[Role::Reviewer]);
        gail.public_key = Some("a".repeat(64));
        received.sender.person = Some(gail);
        CaseInput::Review(received)
    };
    let refused = "refused: /payload/signature";
    for (id, input, expected) in [
        ("g-1", confirm("g-1", &debate), refused),
        ("g-2", signed("g-2", &"b".repeat(64), true), refused),
        ("g-3", signed("g-3", &key, false), refused),
        ("g-4", signed("g-4", &key, true), "gate_reviewed"),
    ] {
        assert_eq!(story.hears(&said(id, 60), &input), expected, "{id}");
    }
}
