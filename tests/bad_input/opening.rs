//! Requests to open a case that cannot be granted, by message and by request.

use concord_events::topology::StreamKind;
use concord_testkit::{Message, stored, unique};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::stage::{Stage, invalid, opening, over_capacity};

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
        (
            with("policy", json!({ "rounds_max": 11 })),
            "/policy/rounds_max",
        ),
        (
            with("policy", json!({ "rounds_max": -1 })),
            "/policy/rounds_max",
        ),
        (
            with("policy", json!({ "answers_min": 1 })),
            "/policy/answers_min",
        ),
        (
            with("policy", json!({ "finding_timeout_ms": 0 })),
            "/policy/finding_timeout_ms",
        ),
        (
            with("policy", json!({ "case_timeout_ms": 1 })),
            "/policy/case_timeout_ms",
        ),
        (
            with("policy", json!({ "vote_rule": "loudest" })),
            "/policy/vote_rule",
        ),
        (
            with("policy", json!({ "risk_spread_max": 1e300 })),
            "/policy/risk_spread_max",
        ),
        (
            with("policy", json!({ "conflicts_max": 33 })),
            "/policy/conflicts_max",
        ),
        (
            with("policy", json!({ "finding_bytes_max": 524_289 })),
            "/policy/finding_bytes_max",
        ),
        (
            with("policy", json!({ "caution_order": vec!["stop"; 33] })),
            "/policy/caution_order",
        ),
        (with("participants", json!([])), "/participants"),
        (with("participants", json!(crowd)), "/participants"),
        (
            with("participants", json!(["alice", "alice"])),
            "/participants/1",
        ),
        (
            with("participants", json!(["alice", "coordinator"])),
            "/participants/1",
        ),
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
        let sent = stage
            .send(&Message::new(
                "_",
                "alice",
                "coordinator",
                "request",
                request,
            ))
            .await;
        stage
            .refused(
                "alice",
                &sent,
                &invalid(&format!("/payload/parameters{pointer}")),
            )
            .await;
    }
    stage.goes_on().await;
}

/// The task is stored in one fact, with everything else about the case.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_too_large() {
    let stage = Stage::start().await;
    let mut parameters = opening(&unique("case"), &["alice"], json!({}));
    parameters["task"]["input"] = json!("x".repeat(700_000));
    let request = json!({ "action": "open_case", "parameters": parameters });
    let sent = stage
        .send(&Message::new(
            "_",
            "alice",
            "coordinator",
            "request",
            request,
        ))
        .await;
    stage
        .refused("alice", &sent, &over_capacity("/payload/parameters/task"))
        .await;
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_the_api_that_cannot_be_granted() {
    let stage = Stage::start().await;
    for (parameters, pointer) in bad_parameters() {
        let refused = stage
            .installation()
            .ask(Service::Coordinator, "open_case", &parameters)
            .await;
        let error = refused.expect_err("it is refused");
        let report: Value = serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}"));
        let found = report["details"]["pointer"].as_str().unwrap_or_default();
        // The API has no envelope around the parameters.
        assert!(
            found == pointer || found == format!("/payload/parameters{pointer}"),
            "{pointer}: {report}"
        );
        assert!(
            !report["recovery_suggestions"][0]
                .as_str()
                .unwrap_or_default()
                .is_empty(),
            "{report}"
        );
    }
    stage.goes_on().await;
}

fn request(parameters: Value) -> Message {
    Message::new(
        "_",
        "alice",
        "coordinator",
        "request",
        json!({ "action": "open_case", "parameters": parameters }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_exists_already_by_message() {
    let stage = Stage::start().await;
    let case = unique("case");
    let first = request(opening(&case, &["alice"], json!({})));
    stage.send(&first).await;
    stage.settled().await;
    let sent = [
        stage
            .send(&request(opening(&case, &["alice"], json!({}))))
            .await,
        stage
            .send(&request(opening(&case, &["alice", "bob"], json!({}))))
            .await,
    ];
    for sent in &sent {
        let error = stage
            .refused("alice", sent, &invalid("/payload/parameters/case_id"))
            .await;
        assert_eq!(
            error["payload"]["error_message"],
            format!("The case {case} exists already.")
        );
    }
    stage.send(&first).await;
    stage.settled().await;
    let errors = stage.errors("alice").await.expect("the stream can be read");
    assert_eq!(
        errors.len(),
        sent.len(),
        "the same request again is no fault"
    );
    let answers = stored(
        stage.client(),
        StreamKind::Messages,
        "concord.v1.msg.*.coordinator.alice.response",
    )
    .await;
    let answers = answers.expect("the stream can be read");
    assert_eq!(
        answers.len(),
        1,
        "the first request was granted, and no other"
    );
    stage.goes_on().await;
}

/// A request through the API has no id: it is the same when it asks for the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_exists_already_by_request() {
    let stage = Stage::start().await;
    let case = unique("case");
    let by_message = unique("case");
    stage
        .send(&request(opening(&by_message, &["alice"], json!({}))))
        .await;
    stage.settled().await;
    let ask = async |case: &str, participants: &[&str]| {
        let parameters = opening(case, participants, json!({}));
        stage
            .installation()
            .ask(Service::Coordinator, "open_case", &parameters)
            .await
    };
    for _ in 0..2 {
        assert_eq!(ask(&case, &["alice"]).await, Ok(json!({ "case_id": case })));
    }
    for (case, participants) in [(&case, &["alice", "bob"][..]), (&by_message, &["alice"])] {
        let error = ask(case, participants).await.expect_err("it is refused");
        let report: Value = serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}"));
        assert_eq!(report["error_code"], "INVALID_REQUEST", "{report}");
        assert_eq!(
            report["details"]["pointer"], "/payload/parameters/case_id",
            "{report}"
        );
        assert_eq!(
            report["error_message"],
            format!("The case {case} exists already.")
        );
        let advice = report["recovery_suggestions"][0]
            .as_str()
            .unwrap_or_default();
        assert!(
            advice.contains(&format!("concord case show {case}")),
            "{report}"
        );
    }
    stage.goes_on().await;
}

/// What a task holds is kept in a fact, deeper inside than in the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_nested_as_deep_as_can_be_read() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    for levels in [127, 126, 125, 124, 122, 118, 110] {
        let input: Value =
            serde_json::from_str(&("[".repeat(levels) + &"]".repeat(levels))).expect("a value");
        let case = unique("case");
        let mut parameters = opening(&case, &["alice"], json!({}));
        parameters["task"]["input"] = input;
        let request = json!({ "action": "open_case", "parameters": parameters });
        let sent = stage
            .send(&Message::new(
                "_",
                "alice",
                "coordinator",
                "request",
                request,
            ))
            .await;
        stage.settled().await;
        // Either it is refused, or the case works.
        if stage.is_alive(&sent).await {
            stage
                .send(&Message::finding(
                    &case,
                    "alice",
                    json!({ "summary": "s" }),
                    0.5,
                ))
                .await;
            stage.decision(&case).await;
        } else {
            stage.error_to("alice", &sent).await;
        }
    }
    stage.goes_on().await;
}
