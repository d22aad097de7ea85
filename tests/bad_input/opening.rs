//! Requests to open a case that cannot be granted, by message and by the API.

use concord_testkit::{Message, messages, unique};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::bad_input::stage::{Stage, invalid, opening, over_capacity, request_to_open, text};

/// Policies that cannot be followed, each with the place of the fault.
fn bad_policies() -> [(Value, &'static str); 12] {
    [
        (json!("contract-revue"), "/policy"),
        (json!(7), "/policy"),
        (json!({ "rounds_max": 11 }), "/policy/rounds_max"),
        (json!({ "rounds_max": -1 }), "/policy/rounds_max"),
        (json!({ "answers_min": 1 }), "/policy/answers_min"),
        (
            json!({ "finding_timeout_ms": 0 }),
            "/policy/finding_timeout_ms",
        ),
        (json!({ "case_timeout_ms": 1 }), "/policy/case_timeout_ms"),
        (json!({ "vote_rule": "loudest" }), "/policy/vote_rule"),
        (
            json!({ "risk_spread_max": 1e300 }),
            "/policy/risk_spread_max",
        ),
        (json!({ "conflicts_max": 33 }), "/policy/conflicts_max"),
        (
            json!({ "finding_bytes_max": 524_289 }),
            "/policy/finding_bytes_max",
        ),
        (
            json!({ "caution_order": vec!["stop"; 33] }),
            "/policy/caution_order",
        ),
    ]
}

/// Values of other parameters that cannot be used, each with the name of the parameter and the place of the fault.
fn bad_values() -> [(&'static str, Value, &'static str); 9] {
    let crowd: Vec<String> = (0..65).map(|n| format!("a{n}")).collect();
    [
        ("participants", json!([]), "/participants"),
        ("participants", json!(crowd), "/participants"),
        ("participants", json!(["alice", "alice"]), "/participants/1"),
        (
            "participants",
            json!(["alice", "coordinator"]),
            "/participants/1",
        ),
        ("participants", json!("alice"), "/participants"),
        ("participants", json!([7]), "/participants/0"),
        ("task", json!(7), "/task"),
        ("task", json!({}), "/task/type"),
        ("colour", json!("red"), "/colour"),
    ]
}

/// Parameters of `open_case` with one fault each, and the place of the fault.
fn bad_parameters() -> Vec<(Value, &'static str)> {
    let good = || opening(&unique("case"), &["alice"], json!({}));
    let mut bad = Vec::new();
    let policies = bad_policies().map(|(policy, pointer)| ("policy", policy, pointer));
    for (field, value, pointer) in policies.into_iter().chain(bad_values()) {
        let mut parameters = good();
        parameters[field] = value;
        bad.push((parameters, pointer));
    }
    for (field, pointer) in [("participants", "/participants"), ("task", "/task")] {
        let mut parameters = good();
        parameters.as_object_mut().expect("an object").remove(field);
        bad.push((parameters, pointer));
    }
    bad
}

async fn a_request_by_message_that_cannot_be_granted(stage: &Stage) {
    for (parameters, pointer) in bad_parameters() {
        let message = request_to_open("alice", &parameters);
        stage
            .send_refused(&message, &invalid(&format!("/payload/parameters{pointer}")))
            .await;
    }
}

/// The task is stored in one event, with everything else about the case.
async fn a_task_that_is_too_large(stage: &Stage) {
    let mut parameters = opening(&unique("case"), &["alice"], json!({}));
    parameters["task"]["input"] = json!("x".repeat(700_000));
    let message = request_to_open("alice", &parameters);
    stage
        .send_refused(&message, &over_capacity("/payload/parameters/task"))
        .await;
}

async fn a_request_to_the_api_that_cannot_be_granted(stage: &Stage) {
    for (parameters, pointer) in bad_parameters() {
        let refused = stage
            .installation()
            .ask(Service::Coordinator, "open_case", &parameters)
            .await;
        let error = refused.expect_err("it is refused");
        let report: Value = serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}"));
        let found = text(&report["details"]["pointer"]);
        // The API has no envelope around the parameters.
        assert!(
            found == pointer || found == format!("/payload/parameters{pointer}"),
            "{pointer}: {report}"
        );
        assert!(
            !text(&report["recovery_suggestions"][0]).is_empty(),
            "{report}"
        );
    }
}

async fn a_case_that_exists_already_by_message(stage: &Stage) {
    let (alice, case) = (unique("alice"), unique("case"));
    let first = request_to_open(&alice, &opening(&case, &["alice"], json!({})));
    stage.send(&first).await;
    stage.settled().await;
    let sent = [
        stage
            .send(&request_to_open(
                &alice,
                &opening(&case, &["alice"], json!({})),
            ))
            .await,
        stage
            .send(&request_to_open(
                &alice,
                &opening(&case, &["alice", "bob"], json!({})),
            ))
            .await,
    ];
    for sent in &sent {
        let error = stage
            .refused(&alice, sent, &invalid("/payload/parameters/case_id"))
            .await;
        assert_eq!(
            error["payload"]["error_message"],
            format!("The case {case} exists already.")
        );
    }
    stage.send(&first).await;
    stage.settled().await;
    let errors = stage.errors(&alice).await;
    assert_eq!(
        errors.len(),
        sent.len(),
        "the same request again is no fault"
    );
    let answers = format!("concord.v1.msg.*.coordinator.{alice}.response");
    let answers = messages(stage.client(), &answers)
        .await
        .expect("the stream can be read");
    assert_eq!(
        answers.len(),
        1,
        "the first request was granted, and no other"
    );
}

/// A request through the API has no id: it is the same when it asks for the same.
async fn a_case_that_exists_already_by_request(stage: &Stage) {
    let case = unique("case");
    let by_message = unique("case");
    stage
        .send(&request_to_open(
            "alice",
            &opening(&by_message, &["alice"], json!({})),
        ))
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
        let advice = text(&report["recovery_suggestions"][0]);
        assert!(
            advice.contains(&format!("concord case show {case}")),
            "{report}"
        );
    }
}

/// The event nests the contents of a task deeper than the request does.
async fn a_task_nested_as_deep_as_can_be_read(stage: &Stage) {
    for levels in [127, 126, 125, 124, 122, 118, 110] {
        let input: Value =
            serde_json::from_str(&("[".repeat(levels) + &"]".repeat(levels))).expect("a value");
        let case = unique("case");
        let mut parameters = opening(&case, &["alice"], json!({}));
        parameters["task"]["input"] = input;
        let message = request_to_open("alice", &parameters);
        let sent = stage.send(&message).await;
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
}

/// Policies that an operator cannot store, each with the place of the fault.
async fn a_policy_that_cannot_be_stored_or_shown(stage: &Stage) {
    let put = json!({ "name": "house rules", "by": "olga", "why": "for a test" });
    let many: serde_json::Map<String, Value> = (0..257)
        .map(|number| (format!("ladder.caution.m{number}"), json!("any")))
        .collect();
    for (field, value, pointer) in [
        ("name", json!("House rules"), "/name"),
        ("name", json!("v$(touch x)"), "/name"),
        ("name", json!("n".repeat(65)), "/name"),
        ("name", Value::Null, "/name"),
        ("policy", json!("contract-revue"), "/policy"),
        ("policy", json!({ "rounds_max": 99 }), "/policy/rounds_max"),
        ("policy", json!({ "round_max": 1 }), "/policy/round_max"),
        ("bounds", json!({ "round_max": "any" }), "/bounds/round_max"),
        (
            "bounds",
            json!({ "rounds_max": "loose" }),
            "/bounds/rounds_max",
        ),
        (
            "bounds",
            json!({ "rounds_max": { "within": [3.0, 1.0] } }),
            "/bounds/rounds_max",
        ),
        ("bounds", Value::Object(many), "/bounds"),
        ("why", json!(" "), "/why"),
        ("colour", json!("red"), "/colour"),
    ] {
        let mut request = put.clone();
        request[field] = value;
        refused_by_api(stage, "put_policy", &request, pointer).await;
    }
    stage.installation().put_policy(&put).await;
    for (request, pointer) in [
        (json!({ "name": "house rules", "version": 2 }), "/version"),
        (json!({ "name": "house rules", "version": 0 }), "/version"),
        (json!({ "name": "quick", "version": 1 }), "/version"),
        (json!({ "name": "house" }), "/name"),
        (json!({}), "/name"),
        (json!({ "name": "quick", "colour": "red" }), "/colour"),
    ] {
        refused_by_api(stage, "policy", &request, pointer).await;
    }
    let unknown = json!({ "participants": ["alice"], "task": { "type": "t" }, "policy": "house" });
    let report = refused_by_api(stage, "open_case", &unknown, "/policy").await;
    let advice = text(&report["recovery_suggestions"][0]);
    assert!(advice.contains("quick, house rules"), "{report}");
}

/// Asks for what cannot be done: the report of the error, whose place is `pointer`.
async fn refused_by_api(
    stage: &Stage,
    verb: &'static str,
    request: &Value,
    pointer: &str,
) -> Value {
    let asked = stage
        .installation()
        .ask(Service::Coordinator, verb, request);
    let error = asked.await.expect_err("it is refused");
    let report: Value = serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}"));
    assert_eq!(report["error_code"], "INVALID_REQUEST", "{report}");
    assert_eq!(
        text(&report["details"]["pointer"]),
        pointer,
        "{request}: {report}"
    );
    report
}

/// Each asks for cases and policies of its own. An event that could not be read again would soon be a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_or_stored_is_refused() {
    let stage = Stage::start_with(|plan| plan.with_setting("work.deliveries_max=3")).await;
    a_request_by_message_that_cannot_be_granted(&stage).await;
    a_request_to_the_api_that_cannot_be_granted(&stage).await;
    a_case_that_exists_already_by_message(&stage).await;
    a_case_that_exists_already_by_request(&stage).await;
    a_task_nested_as_deep_as_can_be_read(&stage).await;
    a_policy_that_cannot_be_stored_or_shown(&stage).await;
    a_task_that_is_too_large(&stage).await;
    stage.goes_on().await;
}
