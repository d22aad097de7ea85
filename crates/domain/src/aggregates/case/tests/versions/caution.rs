//! What nobody has decided, and what was only confirmed, undoes nothing that is more cautious.

use super::*;
use crate::aggregates::case::outcome::decision_by;
use crate::aggregates::impact::assumption_standings;

fn found() -> [serde_json::Value; 2] {
    [json!({ "risk_score": 30 }), json!({ "risk_score": 80 })]
}

fn score(story: &CaseStory) -> Option<f64> {
    current(story).outcome.risk_score
}

fn ends(about: &Conflict, status: Status, value: u32, at: u64) -> ConflictOutcome {
    ConflictOutcome {
        status,
        resolved_at: after(CASE_DUE + at),
        ..challenge_ends(about, value)
    }
}

#[test]
fn a_challenge_that_nobody_has_decided_undoes_no_vote_and_nothing_more_cautious() {
    use Status::{Discussion, Fallback, Mediation, Provisional, Unresolved, Vote};
    for (first, challenged_with, stands) in [
        (Vote, 31, 80),
        (Vote, 95, 80),
        (Discussion, 95, 80),
        (Mediation, 95, 80),
        (Provisional, 31, 80),
        (Provisional, 95, 95),
        (Fallback, 31, 80),
        (Fallback, 95, 95),
        (Unresolved, 31, 80),
    ] {
        for by_default in [Provisional, Fallback] {
            let (mut story, about) = challenged(found(), risk_is(first, 80, 100));
            let ended = ends(&about, by_default, challenged_with, 200);
            settle(&mut story, "e-2", ended);
            let what = format!("{first:?}, then {by_default:?} {challenged_with}");
            assert_eq!(score(&story), Some(f64::from(stands)), "{what}");
            let assumed = format!("{:?}", assumption_standings(story.state(), None));
            assert!(assumed.contains(&format!("({stands}")), "{what}: {assumed}");
            let opened = story.state().opened.clone().unwrap();
            let before = decision_by(1, story.state(), &opened, "settled");
            let once = Some(f64::from(challenged_with));
            assert_eq!(before.outcome.risk_score, once, "as it was made then");
            if by_default == Fallback {
                continue;
            }
            // What somebody decides counts.
            let decided = ends(&about, Status::Overridden, 40, 300);
            settle(&mut story, "e-3", decided);
            assert_eq!(score(&story), Some(40.0), "{what}");
        }
    }
}

/// A case that was decided while the conflict about the risk score and a challenge of ann's 30 were open.
fn both_open() -> (CaseStory, Conflict) {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ben", "ann"], policy()));
    for (from, id, found) in [("ann", "m-ann", 0), ("ben", "m-ben", 1)] {
        story.hears(
            &said(id, 10),
            &finding(from, id, self::found()[found].clone()),
        );
    }
    story.hears(&happened("e-d", 20), &detected(vec![risk()], vec![]));
    let challenge = super::super::gates::challenges("ben", "m-c", "ann");
    assert_eq!(story.hears(&said("m-c", 25), &challenge), "challenged");
    let about = story.state().debated.last().unwrap().clone();
    let due = case_due(CASE, after(CASE_DUE));
    assert_eq!(story.hears(&happened("e-due", CASE_DUE), &due), "decided");
    (story, about)
}

#[test]
fn a_challenge_that_nobody_has_decided_undoes_no_conflict_that_is_not_settled() {
    for (value, stands) in [(31, 80.0), (95, 95.0)] {
        let (mut story, about) = both_open();
        let ended = ends(&about, Status::Provisional, value, 200);
        settle(&mut story, "e-2", ended.clone());
        assert_eq!(score(&story), Some(stands));
        let beside = story.state().beside(&ended);
        let of_nobody = beside.map(|beside| (beside.now_stands, beside.if_confirmed));
        assert_eq!(of_nobody, (value == 31).then_some((None, true)));
        // Whenever the other one ends so, too, the more cautious stands.
        let conflict = risk_is(Status::Provisional, 80, CASE_DUE + 210);
        settle(&mut story, "e-3", conflict);
        assert_eq!(score(&story), Some(stands));
    }
}

#[test]
fn two_confirmations_come_to_the_same_in_whatever_order_they_are_given() {
    for (value, stands) in [(50, 80.0), (95, 95.0)] {
        let mut assumed = Vec::new();
        for conflict_first in [true, false] {
            let (mut story, about) = both_open();
            let both = |status, at: u64| {
                [
                    risk_is(status, 80, CASE_DUE + at + u64::from(!conflict_first)),
                    ends(&about, status, value, at + u64::from(conflict_first)),
                ]
            };
            let provisional = both(Status::Provisional, 100);
            let mut confirmed = both(Status::Confirmed, 200);
            if !conflict_first {
                confirmed.reverse();
            }
            for (number, outcome) in provisional.into_iter().chain(confirmed).enumerate() {
                settle(&mut story, &format!("e-{number}"), outcome);
            }
            assert_eq!(score(&story), Some(stands), "{conflict_first}");
            assumed.push(assumption_standings(story.state(), None));
        }
        let values = |at: usize| {
            assumed[at]
                .values()
                .map(|one| &one.values)
                .collect::<Vec<_>>()
        };
        assert_eq!(values(0), values(1));
    }
}

/// Without a conflict each challenge is about the finding that it names.
#[test]
fn a_second_challenge_that_nobody_has_decided_undoes_no_more_cautious_first_one() {
    for (values, stands) in [([60, 31], 60.0), ([31, 60], 60.0)] {
        for status in [Status::Provisional, Status::Confirmed] {
            let mut story = CaseStory::of("c-1");
            let participants = ["ann", "ben", "cyd"];
            story.hears(&said("m-open", 0), &open_case(&participants, policy()));
            let [ann, _] = found();
            story.hears(&said("m-ann", 10), &finding("ann", "m-ann", ann));
            for (from, id) in [("ben", "m-b"), ("cyd", "m-c")] {
                story.hears(&said(id, 11), &finding(from, id, json!({})));
                let id = format!("{id}-2");
                let challenge = super::super::gates::challenges(from, &id, "ann");
                assert_eq!(story.hears(&said(&id, 12), &challenge), "challenged");
            }
            let about = story.state().debated.clone();
            story.hears(&happened("e-d", 20), &detected(vec![], vec![]));
            for (at, (about, value)) in (0..).zip(about.iter().zip(values)) {
                let id = format!("e-{at}");
                settle(&mut story, &id, ends(about, status, value, at));
            }
            assert_eq!(score(&story), Some(stands), "{status:?} {values:?}");
        }
    }
}

#[test]
fn whoever_ruled_is_told_when_a_challenge_that_fell_back_is_confirmed() {
    let (mut story, about) = challenged(found(), ruling(60));
    let fell_back = ends(&about, Status::Provisional, 90, 200);
    settle(&mut story, "e-2", fell_back.clone());
    assert_eq!(score(&story), Some(60.0));
    let beside = story.state().beside(&fell_back).unwrap();
    assert_eq!(
        (beside.now_stands.unwrap().status, beside.if_confirmed),
        (Status::Ruling, true)
    );
    let mut confirmed = ends(&about, Status::Confirmed, 90, 300);
    confirmed.ruled_by = ruling(0).ruled_by;
    confirmed.ruled_by.as_mut().unwrap().expert = agent("gail");
    settle(&mut story, "e-3", confirmed.clone());
    assert_eq!(score(&story), Some(90.0));
    let eva = BTreeMap::from([(agent("eva"), Concern::Overridden)]);
    assert_eq!(concerned(&story), eva);
    assert_eq!(story.state().beside(&confirmed), None, "it stands");
}

#[test]
fn what_would_change_nothing_if_it_was_confirmed_is_known() {
    // In vain: what ann had stated.
    let (mut story, about) = challenged(found(), ruling(60));
    let in_vain = ends(&about, Status::Provisional, 30, 200);
    settle(&mut story, "e-2", in_vain.clone());
    let beside = story.state().beside(&in_vain).unwrap();
    assert!(beside.now_stands.is_some() && !beside.if_confirmed);
    // The conflict itself stands.
    let provisional = risk_is(Status::Provisional, 80, 100);
    let (story, _) = challenged(found(), provisional.clone());
    assert_eq!(story.state().beside(&provisional), None);
}
