//! Tasks that are given to a panel: a case whose participants are those who fit.

use concord_testkit::{Agent, TestInstallation};
use serde_json::json;

use crate::tasks::PATIENCE;
use crate::tasks::stage::{ask, hears, nth_answer, opening, register, run, to_coordinator};

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_is_a_case_and_its_decision_is_the_result() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let mut agents = Vec::new();
    for (name, score) in [("ann", 20), ("ben", 80)] {
        register(client, name, json!({ "skills": [{ "name": "risk" }] })).await;
        let finding = json!({ "summary": "Seen.", "risk_score": score });
        agents.push(Agent::steadfast(client, name, finding, 0.9).await);
    }
    let fit = |more: serde_json::Value| {
        let mut terms = json!({ "criteria": { "skills": ["risk"] } });
        let fields = terms.as_object_mut().unwrap();
        fields.extend(more.as_object().cloned().unwrap());
        opening("panel", &terms)
    };
    let (kind, done) = run(client, &fit(json!({ "task_id": "p-1" }))).await;
    assert_eq!(kind, "notification", "{done}");
    let done = &done["data"];
    assert_eq!(
        (&done["strategy"], &done["by"], &done["partial"]),
        (&json!("panel"), &json!(["ann", "ben"]), &json!(false))
    );
    assert_eq!(done["result"]["case_id"], "p-1");
    assert_eq!(done["result"]["outcome"]["risk_score"], 80.0, "{done}");

    // What its case would be refused for is refused at once.
    let unknown = fit(json!({ "policy": "no-such-policy" }));
    let (kind, refused) = ask(client, &unknown).await;
    assert_eq!(
        (kind.as_str(), &refused["error_code"]),
        ("error", &json!("INVALID_REQUEST"))
    );
    assert_eq!(
        refused["details"]["pointer"], "/payload/parameters/policy",
        "{refused}"
    );
    let (_, refused) = ask(
        client,
        &fit(json!({ "task_id": "p-1", "priority": "high" })),
    )
    .await;
    assert_eq!(
        refused["details"]["pointer"], "/payload/parameters/task_id",
        "{refused}"
    );
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_cannot_have_the_id_of_a_case_that_exists() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    register(client, "ann", json!({})).await;
    let parameters = json!({ "case_id": "c-1", "participants": ["ann"], "task": { "type": "t" } });
    installation.open_case(&parameters).await;
    let opening = opening("panel", &json!({ "task_id": "c-1" }));
    let (kind, refused) = ask(client, &opening).await;
    assert_eq!(kind, "error", "{refused}");
    assert_eq!(
        refused["details"]["pointer"], "/payload/parameters/task_id",
        "{refused}"
    );
    let what = refused["error_message"].as_str().unwrap();
    assert!(what.starts_with("The case c-1 exists already"), "{what}");
    // Operators and people ask without an envelope.
    let terms = json!({ "task_id": "c-1", "strategy": "panel", "task": { "type": "t" } });
    let service = concord_wire::subject::Service::Coordinator;
    let refused = installation.ask(service, "open_task", &terms).await;
    let refused = refused.expect_err("it is refused");
    assert!(refused.contains(r#""pointer":"/task_id""#), "{refused}");
    assert!(refused.contains(what), "{refused}");
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_whose_task_ends_without_a_decision_is_cancelled() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    register(client, "ann", json!({})).await;
    register(client, "ben", json!({})).await;
    let cancelled = async |case_id: &str| {
        hears(client, "_all", |body| {
            body["payload"]["event"] == "case_cancelled" && body["case_id"] == case_id
        })
        .await
    };
    // Its case must be opened before its time is over, which goes on beside the rest.
    let slow = opening("panel", &json!({ "task_id": "p-2", "deadline_ms": 8_000 }));
    assert_eq!(ask(client, &slow).await.0, "response");

    let given_up = opening("panel", &json!({ "task_id": "p-3" }));
    assert_eq!(ask(client, &given_up).await.0, "response");
    hears(client, "ann", |body| body["case_id"] == "p-3").await;
    let cancel = to_coordinator("olga", "cancel_task", json!({ "task_id": "p-3" }));
    assert_eq!(ask(client, &cancel).await.0, "response");
    cancelled("p-3").await;

    // Its case is cancelled by an operator: whoever opened the task hears it.
    let lost = opening("panel", &json!({ "task_id": "p-4" }));
    assert_eq!(ask(client, &lost).await.0, "response");
    hears(client, "ann", |body| body["case_id"] == "p-4").await;
    let cancel = json!({ "case_id": "p-4", "by": "oscar", "why": "Not needed." });
    let service = concord_wire::subject::Service::Coordinator;
    installation
        .ask(service, "cancel_case", &cancel)
        .await
        .unwrap();
    let (kind, error) = nth_answer(client, &lost, 1).await;
    assert_eq!(
        (kind.as_str(), &error["details"]["reason"]),
        ("error", &json!("case_cancelled"))
    );
    // So is where the task itself is.
    let stopped = opening("panel", &json!({ "task_id": "p-5" }));
    assert_eq!(ask(client, &stopped).await.0, "response");
    let cancel = json!({ "task_id": "p-5", "why": "Not needed." });
    installation
        .ask(service, "cancel_task", &cancel)
        .await
        .unwrap();
    let (kind, error) = nth_answer(client, &stopped, 1).await;
    assert_eq!(
        (kind.as_str(), &error["details"]["reason"]),
        ("error", &json!("cancelled"))
    );
    let (kind, error) = nth_answer(client, &slow, 1).await;
    assert_eq!(
        (kind.as_str(), &error["details"]["reason"]),
        ("error", &json!("deadline"))
    );
    cancelled("p-2").await;
    installation.holds(PATIENCE).await;
}
