//! An opener has as many open tasks as the installation allows, and no more.

use concord_testkit::{TestInstallation, audit, concord, event_data, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{ask, opening, register, to_coordinator};

#[tokio::test(flavor = "multi_thread")]
async fn who_has_all_the_tasks_of_the_quota_waits_until_one_ends() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_service_setting(Service::Coordinator, "service.quota.open_tasks=2")
    })
    .await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    let open = async |id: &str| {
        let terms = json!({ "task_id": id, "criteria": { "agents": ["ann"] } });
        ask(client, &opening("broadcast", &terms)).await
    };
    for id in ["t-1", "t-2"] {
        assert_eq!(open(id).await.0, "response", "{id}");
    }
    let (kind, payload) = open("t-3").await;
    assert_eq!(kind, "error", "{payload}");
    assert_eq!(payload["error_code"], "CAPACITY_EXCEEDED", "{payload}");
    let why = payload.to_string();
    assert!(why.contains("more than 2 open tasks"), "{why}");
    // It names the task, and once more where versions that know no tasks here look for a case (record 92).
    let told = event_data(client, "opener.olga.quota_reached")
        .await
        .unwrap();
    let about = [&told[0]["task_id"], &told[0]["case_id"]];
    assert_eq!(about, [&json!("t-3"), &json!("t-3")], "{told:?}");
    // What is refused for another reason takes no place, and whoever else opens has places of their own.
    let nobody = json!({ "criteria": { "agents": ["nobody"] } });
    let (_, payload) = ask(client, &opening("broadcast", &nobody)).await;
    assert_eq!(payload["error_code"], "AGENT_UNAVAILABLE", "{payload}");
    let terms = json!({
        "strategy": "broadcast", "task": { "type": "sum" }, "deadline_ms": 60_000, "criteria": { "agents": ["ann"] },
    });
    let of_other = to_coordinator("otto", "open_task", terms);
    assert_eq!(ask(client, &of_other).await.0, "response");
    let shown = concord(&[
        "quota",
        "olga",
        "--json",
        "--server",
        installation.server_url(),
    ]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["openers"][0]["open_tasks"], 2, "{shown}");

    let cancel = json!({ "task_id": "t-1", "why": "not needed" });
    let (kind, payload) = ask(client, &to_coordinator("olga", "cancel_task", cancel)).await;
    assert_eq!(kind, "response", "{payload}");
    let mut tries = 0;
    wait_for("the place of what has ended", PATIENCE, async || {
        tries += 1;
        let (kind, payload) = open(&format!("t-again-{tries}")).await;
        (kind == "response")
            .then_some(())
            .ok_or_else(|| payload.to_string())
    })
    .await;
    audit(client).await.unwrap();
}

/// A panel needs a place among the tasks of its opener and one among the cases. What is refused for want of one keeps none of the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_is_refused_keeps_no_place() {
    let installation = TestInstallation::start_with(|plan| {
        let settings = ["open_tasks=1", "open_cases=1"];
        settings.iter().fold(plan, |plan, setting| {
            plan.with_service_setting(Service::Coordinator, format!("service.quota.{setting}"))
        })
    })
    .await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    let terms = json!({ "criteria": { "agents": ["ann"] } });
    let (kind, payload) = ask(
        client,
        &opening(
            "broadcast",
            &json!({ "task_id": "t-1", "criteria": { "agents": ["ann"] } }),
        ),
    )
    .await;
    assert_eq!(kind, "response", "{payload}");
    for _ in 0..2 {
        let (kind, payload) = ask(client, &opening("panel", &terms)).await;
        assert_eq!(kind, "error", "{payload}");
        let why = payload.to_string();
        assert!(why.contains("open task"), "{why}");
    }
    let case = json!({ "case_id": "c-1", "participants": ["ann"], "task": { "type": "sum" } });
    let (kind, payload) = ask(client, &to_coordinator("olga", "open_case", case)).await;
    assert_eq!(kind, "response", "{payload}");

    // And the other way round: no case is left, and the place among the tasks is.
    let cancel = json!({ "task_id": "t-1", "why": "not needed" });
    let (kind, payload) = ask(client, &to_coordinator("olga", "cancel_task", cancel)).await;
    assert_eq!(kind, "response", "{payload}");
    wait_for(
        "a task after a panel that is refused",
        PATIENCE,
        async || {
            let (kind, payload) = ask(client, &opening("panel", &terms)).await;
            let why = payload.to_string();
            assert_eq!(kind, "error", "{why}");
            why.contains("open cases").then_some(()).ok_or(why)
        },
    )
    .await;
    let (kind, payload) = ask(client, &opening("broadcast", &terms)).await;
    assert_eq!(kind, "response", "{payload}");
    audit(client).await.unwrap();
}
