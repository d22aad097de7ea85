use concord_events::{CaseEvent, DebateEvent};
use concord_wire::payload::{ConflictOutcome, ConflictType};
use concord_wire::policy::Policy;
use serde_json::json;

use super::*;
use crate::aggregates::case::CaseMachine;
use crate::aggregates::debate::DebateMachine;
use crate::fixtures::*;

fn case() -> Story<CaseMachine> {
    let mut story = Story::of("c-1");
    story.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    story.hears(&said("m-ann", 1), &finding("ann", "m-ann", json!({})));
    story.hears(&said("m-ben", 2), &finding("ben", "m-ben", json!({})));
    story.hears(&happened("e-det", 3), &detected(vec![], vec![]));
    story
}

/// A debate of one round that ends by a vote, or by discussion.
fn debate(by_vote: bool) -> Story<DebateMachine> {
    let held = [("ann", json!(10), 0.3), ("ben", json!(90), 0.1)];
    let conflict = conflict(
        "d-1",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        &held,
    );
    let mut story = Story::of("d-1");
    story.hears(
        &said("x", 0),
        &open_debate(
            conflict,
            Policy {
                rounds_max: 1,
                ..policy()
            },
        ),
    );
    story.hears(&said("m-1", 1), &keeps("ann", "m-1"));
    let last = if by_vote {
        keeps("ben", "m-2")
    } else {
        joins("ben", "m-2", "ann")
    };
    assert_eq!(story.hears(&said("m-2", 2), &last), "resolved");
    story
}

#[test]
fn untouched_facts_give_the_same_state_and_no_difference() {
    let case = case();
    let (rebuilt, differences) = rebuild::<CaseMachine>(&case.records);
    assert_eq!((rebuilt.state, differences), (case.versioned.state, vec![]));
    for by_vote in [true, false] {
        let debate = debate(by_vote);
        let (rebuilt, differences) = rebuild::<DebateMachine>(&debate.records);
        assert_eq!(
            (rebuilt.state, differences),
            (debate.versioned.state, vec![])
        );
        assert_eq!(recount::<DebateMachine>(&debate.records), vec![]);
    }
}

#[test]
fn a_missing_fact_is_noticed_by_the_next_one() {
    let mut case = case();
    let removed = case.records.remove(1);
    let (_, differences) = rebuild::<CaseMachine>(&case.records);
    assert_eq!(differences[0].sequence, case.records[1].sequence);
    assert!(
        differences[0].what.contains(&removed.sequence.to_string()),
        "{differences:?}"
    );
    assert_eq!(differences[0].aggregate, "case/c-1");
}

#[test]
fn deadlines_that_are_not_those_of_the_state_are_noticed() {
    let mut case = case();
    case.records[2].meta.deadlines.clear();
    let (_, differences) = rebuild::<CaseMachine>(&case.records);
    assert_eq!(differences.len(), 1);
    assert!(differences[0].what.contains("are open"), "{differences:?}");
}

#[test]
fn a_changed_finding_does_not_go_unnoticed_by_who_reads_the_decision() {
    // Not a difference of the replay: the decision is an event. Its findings are named by id, for
    // the auditor.
    let mut case = case();
    let CaseEvent::FindingRecorded(recorded) = &mut case.records[1].event else {
        panic!()
    };
    recorded.received.message_id = message("m-forged");
    let (rebuilt, _) = rebuild::<CaseMachine>(&case.records);
    let decision = rebuilt.state.decision.as_ref().unwrap();
    assert!(
        !decision
            .findings
            .iter()
            .any(|finding| finding.message_id.as_str() == "m-forged")
    );
}

#[test]
fn whatever_is_changed_in_the_end_of_a_debate_is_noticed() {
    type Change = fn(&mut ConflictOutcome);
    let changes: [(bool, &str, Change); 6] = [
        (true, "tally", |outcome| {
            outcome.tally.as_mut().unwrap().options[0].weight += 0.1
        }),
        (true, "tally", |outcome| {
            outcome.tally.as_mut().unwrap().winner = Some("p2".into())
        }),
        (true, "tally", |outcome| outcome.tally = None),
        (true, "positions", |outcome| {
            outcome.positions[0].confidence = 0.4
        }),
        (false, "it ended with", |outcome| {
            outcome.resolution.as_mut().unwrap().value = Some(json!(90))
        }),
        (false, "it ended with", |outcome| {
            outcome.status = concord_wire::payload::Status::Vote
        }),
    ];
    for (by_vote, what, change) in changes {
        let mut debate = debate(by_vote);
        let Some(DebateEvent::Resolved(resolved)) =
            debate.records.last_mut().map(|record| &mut record.event)
        else {
            panic!()
        };
        change(&mut resolved.outcome);
        let differences = recount::<DebateMachine>(&debate.records);
        assert!(
            differences
                .iter()
                .any(|difference| difference.what.contains(what)),
            "{what}: {differences:?}"
        );
        assert_eq!(differences[0].aggregate, "debate/d-1");
    }
}

#[test]
fn weights_that_are_no_binary_fractions_survive_storage() {
    // 0.1 + 0.2 and the like: the count must be the same after writing and reading.
    for n in 1..100u32 {
        let sure = f64::from(n) / 97.0;
        let held = [
            ("ann", json!(10), sure),
            ("ben", json!(10), sure / 3.0),
            ("cyd", json!(90), sure / 7.0),
        ];
        let conflict = conflict(
            "d-1",
            ConflictType::RiskScoreDisagreement,
            "risk_score",
            &held,
        );
        let mut story = Story::<DebateMachine>::of("d-1");
        story.hears(
            &said("x", 0),
            &open_debate(
                conflict,
                Policy {
                    rounds_max: 0,
                    ..policy()
                },
            ),
        );
        let due = round_due(&story.id, 1, start());
        assert_eq!(story.hears(&happened("e", 0), &due), "resolved");
        assert_eq!(recount::<DebateMachine>(&story.records), vec![]);
    }
}
