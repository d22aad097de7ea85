//! An opener has as many open tasks as the installation allows, and no more.

use concord_testkit::{TestInstallation, concord, event_data, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::tasks::PATIENCE;
use crate::tasks::stage::{ask, nth_answer, opening, register, to_coordinator};

#[tokio::test(flavor = "multi_thread")]
async fn who_has_all_the_tasks_of_the_quota_waits_until_one_ends() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
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
    installation.holds(PATIENCE).await;
}

/// A panel needs a place among the tasks of its opener and one among the cases. What is refused for want of one keeps none of the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_is_refused_keeps_no_place() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
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
    installation.holds(PATIENCE).await;
}

/// What is refused for the bytes that it would cause, which are known when it is known who fits, keeps no place.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_causes_too_many_bytes_keeps_no_place() {
    const AGENTS: usize = 2;
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
        plan.with_service_setting(Service::Coordinator, "service.quota.open_tasks=1")
            .with_service_setting(Service::Coordinator, "service.quota.open_cases=1")
            .with_setting("work.agent_bytes_max=10000")
            .with_setting("work.agent_bytes_burst_max=20000")
    })
    .await;
    let client = installation.client();
    for number in 0..AGENTS {
        let card = json!({ "skills": [{ "name": "sum" }] });
        register(client, &format!("ann-{number}"), card).await;
    }
    let all: Vec<String> = (0..AGENTS).map(|number| format!("ann-{number}")).collect();
    let task = json!({ "type": "sum", "input": "x".repeat(30_000) });
    for (opener, strategy) in [("olga", "broadcast"), ("otto", "panel")] {
        let terms = json!({
            "strategy": strategy, "task": task, "deadline_ms": 60_000, "criteria": { "agents": all },
        });
        let (kind, payload) = ask(client, &to_coordinator(opener, "open_task", terms)).await;
        assert_eq!(kind, "error", "{strategy}: {payload}");
        let why = payload["error_message"].as_str().unwrap();
        assert!(why.contains("causes more than"), "{strategy}: {why}");
        let url = installation.server_url();
        let shown = concord(&["quota", opener, "--json", "--server", url]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        let held = &shown["openers"][0];
        assert_eq!(held["open_tasks"], 0, "{strategy}: {shown}");
        assert_eq!(held["open_cases"], 0, "{strategy}: {shown}");
    }
    installation.holds(PATIENCE).await;
}

/// A panel whose task has ended before its case was opened keeps no place for the case.
#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_is_cancelled_at_once_keeps_no_place() {
    const PANELS: usize = 40;
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    let mut cancelled = Vec::new();
    for number in 0..PANELS {
        let id = format!("t-{number}");
        let terms = json!({ "task_id": id, "criteria": { "agents": ["ann"] } });
        opening("panel", &terms).publish(client).await;
        let cancel = json!({ "task_id": id, "why": "not needed" });
        let cancel = to_coordinator("olga", "cancel_task", cancel);
        cancel.publish(client).await;
        cancelled.push((id, cancel));
    }
    for (id, first) in &cancelled {
        // What came before its task is sent again.
        let (kind, _) = nth_answer(client, first, 0).await;
        if kind == "error" {
            let cancel = json!({ "task_id": id, "why": "not needed" });
            ask(client, &to_coordinator("olga", "cancel_task", cancel)).await;
        }
    }
    wait_for("no places are left", PATIENCE, async || {
        let url = installation.server_url();
        let shown = concord(&["quota", "olga", "--json", "--server", url]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        let left = &shown["openers"][0];
        let none = left["open_tasks"] == 0 && left["open_cases"] == 0;
        none.then_some(()).ok_or_else(|| shown.to_string())
    })
    .await;
    installation.holds(PATIENCE).await;
}
