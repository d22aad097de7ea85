//! An agent on NATS that does not answer is not asked for a while, and then tried again.

use concord_testkit::{Message, TestInstallation, concord, settled, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::tasks::PATIENCE;
use crate::tasks::stage::{ask, assignment, opening, register, reply, run, to_coordinator};

/// The agent as `concord agents` shows it.
fn shown(installation: &TestInstallation) -> Value {
    let done = concord(&["agents", "--json", "--server", installation.server_url()]);
    let listed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    listed["registered"][0].clone()
}

async fn is_there(installation: &TestInstallation, status: &str) -> Value {
    wait_for(format!("ann is {status}"), PATIENCE, async || {
        let ann = shown(installation);
        (ann["status"] == status)
            .then(|| ann.clone())
            .ok_or_else(|| ann.to_string())
    })
    .await
}

/// Waits until so much in a row counts of the agent.
async fn has_let_pass(installation: &TestInstallation, count: u64) {
    wait_for(format!("{count} in a row"), PATIENCE, async || {
        let ann = shown(installation);
        (ann["silent_in_a_row"] == count)
            .then_some(())
            .ok_or_else(|| ann.to_string())
    })
    .await;
}

fn now_ms() -> i64 {
    concord_runtime::service::clock::now().unix_millis()
}

/// A request to ann that leaves her so many milliseconds.
fn request_within(from: &str, ms: i64) -> Message {
    let soon = concord_wire::Timestamp::from_unix_millis(now_ms() + ms);
    let request = json!({ "action": "sum", "parameters": {}, "deadline": soon });
    Message::new("_", from, "ann", "request", request)
}

/// Asks ann in vain until so much in a row counts of her, and gives the last request: one of which hardly any time was left when she was
/// asked counts for nothing.
async fn ask_in_vain(installation: &TestInstallation, from: &str, count: u64) -> Message {
    let client = installation.client();
    wait_for(
        format!("{count} in a row by {from}"),
        PATIENCE,
        async || {
            let request = request_within(from, 2_000);
            let (_, failed) = ask(client, &request).await;
            assert_eq!(failed["error_code"], "TIMEOUT", "{failed}");
            let settled = settled(client, PATIENCE).await;
            settled.map_err(|error| error.to_string())?;
            let ann = shown(installation);
            (ann["silent_in_a_row"] == count)
                .then_some(request)
                .ok_or_else(|| ann.to_string())
        },
    )
    .await
}

/// Nobody makes another unavailable by asking for what cannot be done in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_nobody_can_keep_says_nothing_about_who_is_asked() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
        plan.with_service_setting(Service::Coordinator, "service.silence.silent_max=2")
    })
    .await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    for _ in 0..3 {
        let request = request_within("mallory", 200);
        assert_eq!(ask(client, &request).await.1["error_code"], "TIMEOUT");
    }
    for id in ["t-1", "t-2", "t-3"] {
        let terms = json!({ "task_id": id, "criteria": { "agents": ["ann"] }, "deadline_ms": 500 });
        let (_, failed) = run(client, &opening("broadcast", &terms)).await;
        assert_eq!(failed["error_code"], "TIMEOUT", "{failed}");
    }
    settled(client, PATIENCE).await.unwrap();
    let ann = shown(&installation);
    assert_eq!(
        (&ann["status"], &ann["silent_in_a_row"]),
        (&json!("available"), &json!(0)),
        "{ann}"
    );
}

/// With what nobody can answer it takes two to make an agent unavailable for everybody.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_agent_alone_asks_in_vain_makes_nobody_unavailable() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
        let plan = plan.with_service_setting(Service::Coordinator, "service.silence.silent_max=2");
        let least = "service.silence.answer_ms_min=100";
        plan.with_service_setting(Service::Coordinator, least)
    })
    .await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    for _ in 0..3 {
        ask_in_vain(&installation, "mallory", 1).await;
    }
    let ann = shown(&installation);
    assert_eq!(
        (&ann["status"], &ann["silent_in_a_row"]),
        (&json!("available"), &json!(1)),
        "{ann}"
    );
    ask_in_vain(&installation, "ben", 2).await;
    is_there(&installation, "unavailable").await;
    installation.holds(PATIENCE).await;
}

/// A task of ann alone, which leaves her so many milliseconds.
fn only_ann(id: &str, deadline_ms: u64) -> Message {
    let terms =
        json!({ "task_id": id, "criteria": { "agents": ["ann"] }, "deadline_ms": deadline_ms });
    opening("broadcast", &terms)
}

/// Lets ann let tasks pass until two count of her: one that she was given when its time was nearly over counts for nothing.
async fn let_two_pass(installation: &TestInstallation) {
    let client = installation.client();
    let mut given = 0;
    wait_for("ann to have let two pass", PATIENCE, async || {
        given += 1;
        let task = only_ann(&format!("passed-{given}"), 2_000);
        let (kind, payload) = run(client, &task).await;
        assert_eq!(
            (kind.as_str(), &payload["error_code"]),
            ("error", &json!("TIMEOUT"))
        );
        let settled = settled(client, PATIENCE).await;
        settled.map_err(|error| error.to_string())?;
        let ann = shown(installation);
        (ann["silent_in_a_row"] == 2)
            .then_some(())
            .ok_or_else(|| ann.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lets_tasks_pass_is_not_asked_until_it_is_tried_again() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
        let plan = plan.with_service_setting(Service::Coordinator, "service.silence.silent_max=2");
        let least = "service.silence.answer_ms_min=100";
        let plan = plan.with_service_setting(Service::Coordinator, least);
        plan.with_service_setting(Service::Coordinator, "service.silence.open_ms=10000")
    })
    .await;
    let client = installation.client();
    register(client, "ann", json!({ "skills": [{ "name": "sum" }] })).await;
    let_two_pass(&installation).await;
    let away = is_there(&installation, "unavailable").await;
    assert_eq!(away["silent_in_a_row"], 2);
    let why = away["why"].as_str().unwrap();
    assert!(
        why.contains("has not answered 2 requests and tasks"),
        "{why}"
    );

    // Nobody gives it anything, and whoever looks for somebody does not find it.
    let (_, payload) = ask(client, &only_ann("t-3", 60_000)).await;
    assert_eq!(payload["error_code"], "AGENT_UNAVAILABLE", "{payload}");
    let find = json!({ "criteria": { "skills": ["sum"] }, "available": true });
    let (_, found) = ask(client, &to_coordinator("olga", "find_agents", find)).await;
    assert_eq!(found["result"]["agents"], json!([]), "{found}");
    let request = json!({ "action": "sum", "parameters": {} });
    let (_, failed) = ask(
        client,
        &Message::new("_", "olga", "ann", "request", request),
    )
    .await;
    assert_eq!(failed["error_code"], "AGENT_UNAVAILABLE", "{failed}");

    // It is tried again, and answers.
    is_there(&installation, "available").await;
    let again = only_ann("t-4", 60_000);
    assert_eq!(ask(client, &again).await.0, "response");
    let asked = assignment(client, "ann", "t-4").await;
    let done = reply("ann", &asked, "task_result", json!({ "result": 3 }));
    done.publish(client).await;
    has_let_pass(&installation, 0).await;

    // An answer that comes late does not count, but she is heard of.
    let request = ask_in_vain(&installation, "olga", 1).await;
    let late = json!({ "status": "success", "result": {} });
    let late = Message::new("_", "ann", "olga", "response", late)
        .with("/reply_to", request.id())
        .with("/correlation_id", request.id());
    late.publish(client).await;
    has_let_pass(&installation, 0).await;
    installation.holds(PATIENCE).await;
}
