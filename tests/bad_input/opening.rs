//! Requests to open a case that cannot be granted, by message and by request.

use concord_protocol::subject::Service;
use concord_testkit::{Message, unique};
use serde_json::{Value, json};

use crate::stage::{Stage, invalid, opening};

fn bad_parameters() -> Vec<(Value, &'static str)> {
    let good = || opening(&unique("case"), &["alice"], json!({}));
    let with = |field: &str, value: Value| {
        let mut parameters = good();
        parameters[field] = value;
        parameters
    };
    let without = |field: &str| {
        let mut parameters = good();
        parameters.as_object_mut().expect("an object").remove(field);
        parameters
    };
    let crowd: Vec<String> = (0..65).map(|n| format!("a{n}")).collect();
    vec![
        (with("policy", json!("contract-revue")), "/policy"),
        (with("policy", json!(7)), "/policy"),
        (with("policy", json!({ "rounds_max": 11 })), "/policy/rounds_max"),
        (with("policy", json!({ "rounds_max": -1 })), "/policy/rounds_max"),
        (with("policy", json!({ "answers_min": 1 })), "/policy/answers_min"),
        (with("policy", json!({ "finding_timeout_ms": 0 })), "/policy/finding_timeout_ms"),
        (with("policy", json!({ "case_timeout_ms": 1 })), "/policy/case_timeout_ms"),
        (with("policy", json!({ "vote_rule": "loudest" })), "/policy/vote_rule"),
        (with("policy", json!({ "risk_spread_max": 1e300 })), "/policy/risk_spread_max"),
        (with("participants", json!([])), "/participants"),
        (with("participants", json!(crowd)), "/participants"),
        (with("participants", json!(["alice", "alice"])), "/participants/1"),
        (with("participants", json!(["alice", "coordinator"])), "/participants/1"),
        (with("participants", json!("alice")), "/participants"),
        (with("participants", json!([7])), "/participants/0"),
        (with("task", json!("review")), "/task"),
        (with("task", json!({})), "/task"),
        (with("colour", json!("red")), "/colour"),
        (without("participants"), ""),
        (without("task"), ""),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_by_message_that_cannot_be_granted() {
    let stage = Stage::start().await;
    for (parameters, pointer) in bad_parameters() {
        let request = json!({ "action": "open_case", "parameters": parameters });
        let sent = stage.send(&Message::new("_", "alice", "coordinator", "request", request)).await;
        stage.refused("alice", &sent, &invalid(&format!("/payload/parameters{pointer}"))).await;
    }
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_the_api_that_cannot_be_granted() {
    let stage = Stage::start().await;
    for (parameters, pointer) in bad_parameters() {
        let refused = stage.installation().ask(Service::Coordinator, "open_case", &parameters).await;
        let error = refused.expect_err("it is refused");
        let report: Value = serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}"));
        let found = report["details"]["pointer"].as_str().unwrap_or_default();
        // The API has no envelope around the parameters.
        assert!(found == pointer || found == format!("/payload/parameters{pointer}"), "{pointer}: {report}");
        assert!(!report["recovery_suggestions"][0].as_str().unwrap_or_default().is_empty(), "{report}");
    }
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_is_open_already() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    let request = |participants: &[&str]| {
        let request = json!({ "action": "open_case", "parameters": opening(&case, participants, json!({})) });
        Message::new("_", "alice", "coordinator", "request", request)
    };
    stage.send(&request(&["alice"])).await;
    let sent = stage.send(&request(&["alice", "bob"])).await;
    stage.refused("alice", &sent, &invalid("/payload/parameters/case_id")).await;
    stage.settled().await;
    assert_eq!(stage.errors("alice").await.expect("the stream can be read").len(), 1, "the same request is no fault");
    stage.goes_on().await;
}

/// What a task holds is kept in a fact, deeper inside than in the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_nested_as_deep_as_can_be_read() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    for levels in [127, 126, 125, 124, 122, 118, 110] {
        let input: Value = serde_json::from_str(&("[".repeat(levels) + &"]".repeat(levels))).expect("a value");
        let case = unique("case");
        let mut parameters = opening(&case, &["alice"], json!({}));
        parameters["task"]["input"] = input;
        let request = json!({ "action": "open_case", "parameters": parameters });
        let sent = stage.send(&Message::new("_", "alice", "coordinator", "request", request)).await;
        stage.settled().await;
        // Either it is refused, or the case works.
        if stage.is_alive(&sent).await {
            stage.send(&Message::finding(&case, "alice", json!({ "summary": "s" }), 0.5)).await;
            stage.decision(&case).await;
        } else {
            stage.error_to("alice", &sent).await;
        }
    }
    stage.goes_on().await;
}
