use concord_wire::payload::{ConflictType, OPEN_DEBATE};
use concord_wire::{Envelope, ErrorCode};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aggregates::case::CaseMachine;
use crate::aggregates::debate::DebateMachine;
use crate::aggregates::detection::DetectionMachine;
use crate::fixtures::{
    Story, after, agent, case_due, case_id, conflict, detection_of, finding, happened, joins,
    keeps, open_case, open_debate, opening_by_request, policy, received, said, start, token,
};

mod golden;

proptest! {
    #[test]
    fn the_source_of_an_effect_is_the_fact_it_was_made_from(
        id in "[A-Za-z0-9-][A-Za-z0-9_-]{0,63}", sequence in any::<u64>(), place in any::<usize>(),
    ) {
        let id_of_effect = effect_id(&token(&id), sequence, place);
        prop_assert_eq!(source_of(id_of_effect.as_str()), Some((id.as_str(), sequence)));
        prop_assert!(MessageId::new(id_of_effect.as_str()).is_ok());
    }
}

#[test]
fn no_other_text_has_a_source() {
    for text in [
        "", "-", "--", "a", "a-1", "a-1-", "a--1", "a-x-1", "a-1-x", "a-01-1", "a-1-01", "a-+1-1",
        "a-1-+1",
    ] {
        assert_eq!(source_of(text), None, "{text:?}");
    }
    assert_eq!(source_of("c-1-2-3"), Some(("c-1", 2)));
    assert_eq!(
        source_of("a-18446744073709551616-0"),
        None,
        "a sequence has 64 bits"
    );
}

/// The messages of a story's last fact, in short: sender, recipient, type and what it refers to.
fn said_because_of<M: crate::Machine>(story: &Story<M>) -> Vec<String> {
    let of = |sent: Envelope| {
        let refers = sent.correlation_id.unwrap_or_default();
        let response = if sent.requires_response {
            " and waits"
        } else {
            ""
        };
        format!(
            "{} to {}: {} about {refers:?}{response}",
            sent.from_agent, sent.to_agent, sent.message_type
        )
    };
    messages::<M>(story.last())
        .unwrap()
        .into_iter()
        .map(of)
        .collect()
}

#[test]
fn what_is_said_because_of_each_fact() {
    let mut case = Story::<CaseMachine>::of("c-1");
    case.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    assert_eq!(
        said_because_of(&case),
        [
            "coordinator to olga: response about \"m-open\"",
            "coordinator to ann: task_assignment about \"\" and waits",
            "coordinator to ben: task_assignment about \"\" and waits",
        ]
    );
    case.hears(&said("m-1", 1), &finding("ann", "m-1", json!({})));
    assert_eq!(said_because_of(&case), [""; 0]);
    case.hears(&said("m-2", 2), &finding("ann", "m-2", json!({})));
    assert_eq!(
        said_because_of(&case),
        ["coordinator to ann: error about \"m-2\""]
    );
    case.hears(
        &happened("e", 900_000),
        &case_due(crate::aggregates::case::CASE, after(900_000)),
    );
    assert_eq!(
        said_because_of(&case),
        ["coordinator to _all: notification about \"\""]
    );

    let findings = vec![
        received("ann", "m-1", 0.8, json!({"risk_score": 10})),
        received("ben", "m-2", 0.8, json!({"risk_score": 90})),
    ];
    let mut detection = Story::<DetectionMachine>::of("c-1");
    detection.hears(&happened("e", 3), &detection_of(findings, policy()));
    let conflict = detection.state().detected.clone().unwrap().debated[0].clone();
    let id = conflict.conflict_id.clone();
    assert_eq!(said_because_of(&detection), [""; 0]);

    let mut debate = Story::<DebateMachine>::of(id.as_str());
    debate.hears(&said("x", 4), &open_debate(conflict, policy()));
    let question =
        |to: &str| format!("debate-facilitator to {to}: question about \"{id}\" and waits");
    assert_eq!(said_because_of(&debate), [question("ann"), question("ben")]);
    debate.hears(&said("m-3", 5), &joins("ann", "m-3", "ben"));
    let told = |to: &str, what: &str| format!("debate-facilitator to {to}: {what} about \"{id}\"");
    assert_eq!(said_because_of(&debate), [told("ben", "agreement")]);
    debate.hears(&said("m-4", 6), &keeps("ann", "m-4"));
    assert_eq!(
        said_because_of(&debate),
        ["debate-facilitator to ann: error about \"m-4\""]
    );
    debate.hears(&said("m-5", 7), &keeps("ben", "m-5"));
    assert_eq!(
        said_because_of(&debate),
        [told("_all", "notification"), told("ann", "disagreement")]
    );
}

#[test]
fn a_request_for_a_debate_is_read_as_it_was_meant() {
    let findings = vec![
        received("ann", "m-1", 0.8, json!({"recommendation": "sign"})),
        received("ben", "m-2", 0.8, json!({"recommendation": "reject"})),
    ];
    let mut detection = Story::<DetectionMachine>::of("c-1");
    detection.hears(&happened("e", 3), &detection_of(findings, policy()));
    let sent = messages::<DetectionMachine>(&opening_by_request(detection.last()))
        .unwrap()
        .remove(0);
    let request: Request = sent.payload().unwrap();
    assert_eq!(request.action, OPEN_DEBATE);
    let read = read_open_debate(&request).unwrap();
    let found = detection.state().detected.clone().unwrap();
    let (conflict, terms) = (found.debated[0].clone(), DebateTerms::default());
    assert_eq!(
        read,
        OpenDebate {
            case_id: case_id(),
            conflict,
            policy: policy(),
            terms
        }
    );
    let broken = Request {
        parameters: json!({"case_id": "c-1", "conflict": 7}),
        ..request
    };
    assert_eq!(
        read_open_debate(&broken).unwrap_err().pointer,
        "/payload/parameters/conflict"
    );
}

#[test]
fn an_error_tells_which_message_was_not_used_why_and_what_to_do() {
    let mut case = Story::<CaseMachine>::of("c-1");
    case.hears(&said("m-open", 0), &open_case(&["ann", "ben"], policy()));
    case.hears(&said("m-1", 1), &finding("ann", "m-1", json!({})));
    case.hears(&said("m-2", 2), &finding("ann", "m-2", json!({})));
    let repeated: ErrorReport = messages::<CaseMachine>(case.last()).unwrap()[0]
        .payload()
        .unwrap();
    case.hears(
        &happened("e", 30_000),
        &case_due(crate::aggregates::case::FINDINGS, after(30_000)),
    );
    case.hears(&said("m-3", 30_001), &finding("ben", "m-3", json!({})));
    let late: ErrorReport = messages::<CaseMachine>(case.last()).unwrap()[0]
        .payload()
        .unwrap();
    for (report, code, id) in [
        (repeated, ErrorCode::InvalidRequest, "m-2"),
        (late, ErrorCode::Timeout, "m-3"),
    ] {
        assert_eq!(
            (report.error_code, &report.details["message_id"]),
            (code, &json!(id))
        );
        assert_eq!(report.recovery_suggestions.len(), 1);
    }
}

#[test]
fn a_party_without_a_position_is_not_asked() {
    let held = [("ann", json!(1), 0.5), ("ben", json!(90), 0.5)];
    let conflict = conflict(
        "d-1",
        ConflictType::RiskScoreDisagreement,
        "risk_score",
        &held,
    );
    let asked = [agent("ann"), agent("zoe")];
    let round = Round {
        case_id: &case_id(),
        conflict: &conflict,
        round: 1,
        rounds_max: 2,
        tokens_max: 5,
        asked: &asked,
        due: start(),
        guidance: None,
        added_context: None,
        dependants: &[],
    };
    assert_eq!(round.questions().len(), 1);
}
