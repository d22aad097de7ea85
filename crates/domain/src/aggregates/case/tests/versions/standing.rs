//! What a person has decided stands until somebody decides otherwise.

use concord_events::DebateAsked;
use serde_json::Value;

use super::*;
use crate::aggregates::case::outcome::decision_by;
use crate::aggregates::impact::assumption_standings;
use crate::rules::impact::graph::Source;

#[test]
fn a_challenge_that_nobody_has_decided_leaves_a_ruling_standing() {
    let found = [json!({"risk_score": 30}), json!({"risk_score": 80})];
    let (mut story, about) = challenged(found, ruling(45));
    let ends = |status| ConflictOutcome {
        status,
        ..challenge_ends(&about, 95)
    };
    settle(&mut story, "e-2", ends(Status::Provisional));
    let decision = current(&story);
    assert_eq!(decision.outcome.risk_score, Some(45.0));
    assert_eq!(
        decision.provisional,
        std::slice::from_ref(&about.conflict_id),
        "to be reviewed"
    );
    let opened = story.state().opened.clone().unwrap();
    let before = decision_by(1, story.state(), &opened, "settled");
    assert_eq!(before.outcome.risk_score, Some(95.0), "as it was made then");
    // And so it is for what rests on it.
    let assumed = |story: &CaseStory| format!("{:?}", assumption_standings(story.state(), None));
    let before = assumed(&story);
    assert!(before.contains("45") && !before.contains("95"), "{before}");
    settle(&mut story, "e-3", ends(Status::Confirmed));
    assert_eq!(current(&story).outcome.risk_score, Some(95.0), "reviewed");
    let after = assumed(&story);
    assert!(after.contains("95"), "{after}");
}

/// A case of which a person has ruled 45 as the risk score, in a challenge of ann's 20, and then nobody on the conflict about the same.
fn ruled_in_a_challenge(value: u32) -> (CaseStory, ConflictOutcome) {
    let found = [json!({"risk_score": 20}), json!({"risk_score": 80})];
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], policy()));
    for (from, id, found) in [("ann", "m-ann", &found[0]), ("ben", "m-ben", &found[1])] {
        story.hears(&said(id, 10), &finding(from, id, found.clone()));
    }
    story.hears(&happened("e-d", 20), &detected(vec![risk()], vec![]));
    let challenge = super::super::gates::challenges("ben", "m-c", "ann");
    assert_eq!(story.hears(&said("m-c", 25), &challenge), "challenged");
    let of_challenge = story.state().debated.last().unwrap().clone();
    settle(&mut story, "e-1", challenge_ends(&of_challenge, value));
    let by_default = risk_is(Status::Provisional, 80, CASE_DUE + 300);
    settle(&mut story, "e-2", by_default.clone());
    (story, by_default)
}

#[test]
fn a_conflict_that_nobody_has_decided_leaves_standing_what_a_person_ruled_in_a_challenge() {
    for ruled in [45, 20] {
        let (mut story, by_default) = ruled_in_a_challenge(ruled);
        let risk = |story: &CaseStory| current(story).outcome.risk_score;
        assert_eq!(risk(&story), Some(f64::from(ruled)));
        assert_eq!(
            current(&story).provisional,
            [risk_id(&story)],
            "to be reviewed"
        );
        let assumed = assumption_standings(story.state(), None);
        let assumed = format!("{assumed:?}");
        assert!(assumed.contains(&format!("({ruled}")), "{assumed}");
        assert!(!assumed.contains("80"), "{assumed}");
        let opened = story.state().opened.clone().unwrap();
        let before = decision_by(1, story.state(), &opened, "settled");
        assert_eq!(before.outcome.risk_score, Some(80.0), "as it was made then");
        let confirmed = ConflictOutcome {
            status: Status::Confirmed,
            resolved_at: after(CASE_DUE + 400),
            ..by_default
        };
        settle(&mut story, "e-3", confirmed);
        assert_eq!(risk(&story), Some(80.0), "somebody has decided it");
    }
}

fn risk_id(story: &CaseStory) -> concord_wire::DebateId {
    let mut debated = story.state().debated.iter();
    let is_risk = |one: &&Conflict| one.kind != ConflictType::Challenge;
    debated.find(is_risk).unwrap().conflict_id.clone()
}

/// What stands of the margin after these outcomes of the conflict about it and of a challenge, whose subjects are spelled so.
fn margin_after(spelled: [&str; 2], ends: [(bool, Status, u32); 2]) -> Value {
    let held = [("ann", json!(25), 0.5), ("ben", json!(30), 0.5)];
    let mut case = story(Phase::Deliberating).state().clone();
    let [detected, challenged] = spelled;
    let kind = ConflictType::EstimateDisagreement;
    let found = conflict("d-1", kind, detected, &held);
    let challenge = conflict("d-2", ConflictType::Challenge, challenged, &held);
    let asked = DebateAsked {
        conflict: challenge.clone(),
        policy: policy(),
        terms: Default::default(),
    };
    let id = challenge.conflict_id.clone();
    case.asked.insert(id, std::sync::Arc::new(asked));
    case.debated = vec![found, challenge];
    for (at, (is_challenge, status, value)) in (1..).zip(ends) {
        let about = &case.debated[usize::from(is_challenge)];
        let mut ended = crate::fixtures::outcome(about, status, Some(json!(value)));
        ended.resolved_at = after(at);
        case.outcomes.insert(about.conflict_id.clone(), ended);
    }
    let assumed = assumption_standings(&case, None);
    json!(assumed[&Source::assumption(challenged)].values[""])
}

#[test]
fn subjects_are_the_same_however_they_are_spelled() {
    use Status::{Fallback, Provisional, Ruling, Vote};
    for spelled in [
        ["operating margin", "operating margin"],
        ["operating margin", "operating_margin"],
        ["operating margin", "Operating-Margin"],
        ["acme/operating margin", "ACME/operating_margin"],
    ] {
        for (ends, stands) in [
            ([(false, Ruling, 28), (true, Provisional, 25)], 28.0),
            ([(true, Ruling, 28), (false, Provisional, 25)], 28.0),
            ([(true, Ruling, 28), (false, Fallback, 25)], 28.0),
            ([(true, Ruling, 28), (false, Vote, 25)], 25.0),
            ([(true, Vote, 28), (false, Provisional, 25)], 25.0),
        ] {
            let what = format!("{spelled:?} {ends:?}");
            assert_eq!(margin_after(spelled, ends), json!(stands), "{what}");
        }
    }
}
