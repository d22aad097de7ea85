use serde_json::json;

use super::*;
use crate::fixtures::*;

fn input(conflicts_max: u32) -> DetectionInput {
    let said = |name: &str, score: u32, advice: &str| {
        received(
            name,
            &format!("m-{name}"),
            0.8,
            json!({"risk_score": score, "recommendation": advice}),
        )
    };
    DetectionInput {
        case_id: case_id(),
        opened_by: Some(agent("olga")),
        policy: Policy {
            conflicts_max,
            ..policy()
        },
        gate: None,
        circumstances: Default::default(),
        confirmed: Default::default(),
        findings: vec![said("ben", 80, "reject"), said("ann", 30, "sign")],
        scored: Vec::new(),
        model_absent: false,
        rules: RULES,
    }
}

#[test]
fn conflicts_are_found_once_and_a_debate_is_opened_for_each_of_the_first() {
    for (limit, debated) in [(5, 2), (1, 1), (0, 0)] {
        let mut story = Story::<DetectionMachine>::of("c-1");
        assert_eq!(
            story.hears(&happened("e-closed", 0), &input(limit)),
            "completed"
        );
        assert_eq!(
            story.hears(&happened("e-closed", 0), &input(limit)),
            "ignored: already_done"
        );
        let found = story.state().detected.clone().unwrap();
        assert_eq!(
            (found.debated.len(), found.deferred.len()),
            (debated, 2 - debated)
        );
        let opened: Vec<_> = debates(&found)
            .map(|debate| (debate.conflict, debate.policy))
            .collect();
        let expected: Vec<_> = found
            .debated
            .iter()
            .map(|conflict| (conflict.clone(), found.policy.clone()))
            .collect();
        assert_eq!(opened, expected);
        assert_eq!(
            DetectionMachine::effects(story.last()),
            [],
            "the facilitator reads the event"
        );
        // Events of earlier versions have their requests still.
        let asked: Vec<_> = DetectionMachine::effects(&opening_by_request(story.last()))
            .into_iter()
            .map(|effect| match effect {
                Effect::OpenDebate {
                    conflict, policy, ..
                } => (conflict, *policy),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(asked, expected);
        assert_eq!(DetectionMachine::case_of(story.last()), Some(case_id()));
    }
}

#[test]
fn without_findings_there_is_no_conflict() {
    let mut story = Story::<DetectionMachine>::of("c-1");
    let silent = DetectionInput {
        findings: vec![],
        ..input(5)
    };
    assert_eq!(story.hears(&happened("e-closed", 0), &silent), "completed");
    assert_eq!(DetectionMachine::effects(story.last()), []);
    assert!(DetectionMachine::creates(&silent));
}

#[test]
fn a_debate_knows_what_counts_of_its_parties_alone() {
    let confirmed = [("ann", 0.5), ("zoe", 0.3)].map(|(who, share)| (agent(who), share));
    let input = DetectionInput {
        confirmed: confirmed.into(),
        ..input(1)
    };
    let mut story = Story::<DetectionMachine>::of("c-1");
    story.hears(&happened("e-closed", 0), &input);
    let DetectionEvent::Completed(detected) = &story.last().event;
    let terms = debates(detected).next().unwrap().terms;
    assert_eq!(terms.confirmed, [(agent("ann"), 0.5)].into());
}
