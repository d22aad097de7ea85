//! Whom an entry of a case reaches: told at once, held back, or kept, by its importance.

use async_nats::Client;
use concord_agent::{Agent, AgentId, CaseId};
use concord_testkit::{Message, TestInstallation, event_data, message_bodies};
use serde_json::{Value, json};

use crate::together::{PATIENCE, asks, command, granted, told};

/// Opens a case of ann and ben whose policy tells of what matters.
async fn filtered(installation: &TestInstallation, importance: Value) -> String {
    let case = concord_testkit::unique("case");
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben"], "task": { "type": "test" },
        "policy": { "importance": importance, "answer_timeout_ms": 600_000, "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    case
}

fn writes(case: &str, from: &str, topic: &str, importance: f64) -> Message {
    let parameters =
        json!({ "topic": topic, "value": { "seen": topic }, "importance": importance });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

/// The topics of which somebody was told at once.
async fn heard(client: &Client, case: &str, to: &str) -> Vec<String> {
    let filter = format!("concord.v1.msg.{case}.coordinator.{to}.notification");
    let bodies = message_bodies(client, &filter)
        .await
        .expect("they are read");
    let payloads = bodies.iter().map(|body| &body["payload"]);
    let told = payloads.filter(|payload| payload["event"] == "insight_shared");
    let topic = |payload: &Value| {
        payload["data"]["insight"]["topic"]
            .as_str()
            .map(str::to_owned)
    };
    told.filter_map(topic).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matters_is_told_at_once_and_the_rest_is_kept_with_the_reason() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = filtered(&installation, json!({ "filtered": true })).await;
    let opener = installation_opener(client, &case).await;
    for (topic, importance, reach) in [
        ("small", 0.2, "kept"),
        ("middling", 0.75, "held"),
        ("great", 0.95, "broadcast"),
    ] {
        let kept = granted(client, &writes(&case, "ann", topic, importance)).await;
        assert_eq!(kept["reach"], reach, "{kept}");
    }
    for to in ["ben", opener.as_str()] {
        let data = told(client, (&case, to), "insight_shared", |_| true).await;
        assert_eq!(
            data["insight"]["value"],
            json!({ "seen": "great" }),
            "{data}"
        );
        assert_eq!(data["reach"]["broadcast_above"], 0.8, "{data}");
        assert_eq!(heard(client, &case, to).await, ["great"]);
    }
    assert!(heard(client, &case, "ann").await.is_empty());

    // They differ about the risk: while a debate is open, less is enough.
    for (agent, score) in [("ann", 10), ("ben", 80)] {
        let finding = json!({ "summary": "Seen.", "risk_score": score });
        Message::finding(&case, agent, finding, 0.8)
            .store(client)
            .await;
    }
    let debate = format!("concord.v1.msg.{case}.debate-facilitator.ann.question");
    concord_testkit::wait_for("a question", PATIENCE, async || {
        let asked = message_bodies(client, &debate).await?.len();
        (asked > 0).then_some(()).ok_or("none".to_owned())
    })
    .await;
    // What was held back is told once, when the conflicts were detected; and what is written again is another version.
    let first = told(client, (&case, "ann"), "insights_consolidated", |_| true).await;
    assert_eq!(
        (&first["checkpoint"], &first["reason"]),
        (&json!(1), &json!("detected"))
    );
    let insights = first["insights"].as_array().expect("a list");
    assert_eq!(insights.len(), 1, "{first}");
    assert_eq!(insights[0]["topic"], "middling");

    let kept = granted(client, &writes(&case, "ann", "middling", 0.75)).await;
    assert_eq!(kept["reach"], "broadcast", "{kept}");

    check_views(&installation, &case);
    let mallory = json!({ "case_id": case, "insights": true });
    let peeped = asks(client, "mallory", "memory", mallory).await;
    assert_eq!(peeped.unwrap_err()["error_code"], "UNAUTHORIZED");
    let odd = asks(client, "ann", "memory", json!({ "insights": true })).await;
    assert_eq!(odd.unwrap_err()["details"]["pointer"], "/case_id");
    check_library(&installation, &case).await;
    installation.holds(PATIENCE).await;
}

async fn installation_opener(client: &Client, case: &str) -> String {
    let opened = event_data(client, &format!("case.{case}.opened"))
        .await
        .expect("the case was opened");
    opened[0]["opened_by"].as_str().expect("a name").to_owned()
}

fn check_views(installation: &TestInstallation, case: &str) {
    let insights = command(installation, &["case", "insights", case]).unwrap();
    let of = |shown: &Value| -> Vec<(String, String)> {
        let entries = shown["entries"].as_array().expect("entries").iter();
        let pair = |one: &Value| {
            let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
            (text(&one["topic"]), text(&one["reach"]["reach"]))
        };
        entries.map(pair).collect()
    };
    let pairs = |expected: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(topic, reach): &(&str, &str)| ((*topic).to_owned(), (*reach).to_owned());
        expected.iter().map(owned).collect()
    };
    let told = [("great", "broadcast"), ("middling", "broadcast")];
    assert_eq!(of(&insights), pairs(&told));
    assert_eq!(insights["entries"][0]["value"], json!({ "seen": "great" }));
    let listed = command(installation, &["memory", "list", "--case", case]).unwrap();
    assert_eq!(of(&listed), pairs(&[told[0], told[1], ("small", "kept")]));
    let middling = &listed["entries"][1]["reach"];
    assert_eq!(middling["adapted"], json!(["debate_open"]), "{middling}");
}

async fn check_library(installation: &TestInstallation, case: &str) {
    let ben = Agent::builder("ben");
    let ben = ben
        .connect(installation.server_url())
        .await
        .expect("it connects");
    let case = CaseId::new(case).expect("an id");
    let shown = ben.memory().insights(&case).await.expect("they are shown");
    let first = &shown.entries[0].listing;
    assert_eq!(first.agent, AgentId::new("ann").expect("a name"));
    assert_eq!(first.topic.as_str(), "great");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_at_once_forms_patterns_with_the_rest() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = filtered(&installation, json!({ "filtered": true })).await;
    for (agent, topic, importance, reach) in [
        ("ann", "capex", 0.81, "broadcast"),
        ("ben", "capex", 0.80, "held"),
        ("ann", "fx", 0.95, "broadcast"),
        ("ben", "fx", 0.95, "broadcast"),
    ] {
        let kept = granted(client, &writes(&case, agent, topic, importance)).await;
        assert_eq!(kept["reach"], reach, "{kept}");
    }
    for agent in ["ann", "ben"] {
        let finding = json!({ "summary": "Seen.", "risk_score": 10 });
        Message::finding(&case, agent, finding, 0.8)
            .store(client)
            .await;
    }
    let first = told(client, (&case, "ann"), "insights_consolidated", |_| true).await;
    let insights = first["insights"].as_array().expect("a list");
    let topics: Vec<&Value> = insights.iter().map(|one| &one["agent"]).collect();
    assert_eq!(topics, [&json!("ben")], "nothing is told again: {first}");
    let patterns = first["patterns"].as_array().expect("a list");
    let about: Vec<&Value> = patterns.iter().map(|one| &one["about"]).collect();
    assert_eq!(about, [&json!("capex"), &json!("fx")], "{first}");
    assert_eq!(patterns[0]["agents"], json!(["ann", "ben"]), "{first}");
    installation.holds(PATIENCE).await;
}
