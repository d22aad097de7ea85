//! A debate begins with the parties writing what they know, and refers to the snapshot that is taken then.

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, event_data, message_bodies, wait_for};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::together::{PATIENCE, asks, granted, refused};

const FACILITATOR: &str = "debate-facilitator";
/// How long a debate waits for a party that says nothing: what the other one does must come before that is over.
const SYNC_MS: u64 = 8_000;

/// Opens a case of ann and ben, whose debate takes a snapshot, and lets them differ.
async fn disputed(installation: &TestInstallation, sync_ms: u64) -> String {
    let case = concord_testkit::unique("case");
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben"], "task": { "type": "test" },
        "policy": { "memory_sync_ms": sync_ms, "answer_timeout_ms": 600_000, "rounds_max": 1 },
    });
    installation.open_case(&opening).await;
    for (agent, score) in [("ann", 10), ("ben", 80)] {
        let finding = json!({ "summary": "Seen.", "risk_score": score });
        let finding = Message::finding(&case, agent, finding, 0.8);
        finding.store(installation.client()).await;
    }
    case
}

/// Waits for a message of the facilitator to somebody: the first that is as asked for.
async fn hears(client: &Client, case: &str, to: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let filter = format!("concord.v1.msg.{case}.{FACILITATOR}.{to}.*");
    wait_for(format!("a message to {to}"), PATIENCE, async || {
        let bodies = message_bodies(client, &filter).await?;
        let mut found = bodies.into_iter().filter(|body| is_it(body));
        found.next().ok_or_else(|| "there is none".to_owned())
    })
    .await
}

async fn told(client: &Client, case: &str, to: &str, event: &str) -> Value {
    hears(client, case, to, |body| body["payload"]["event"] == event).await
}

fn acknowledges(case: &str, from: &str, asked: &Value) -> Message {
    let acknowledged = Message::new(case, from, FACILITATOR, "acknowledgement", json!({}));
    acknowledged.with("/reply_to", asked["message_id"].clone())
}

fn remembers(case: &str, from: &str, value: u64) -> Message {
    let parameters = json!({ "topic": "margin", "value": value, "importance": 0.9 });
    let payload = json!({ "action": "memory_put", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

async fn seen(client: &Client, snapshot: &str, agent: &str) -> Value {
    let asked = json!({ "agent": agent, "topic": "margin", "as_of": snapshot });
    asks(client, "ben", "memory", asked)
        .await
        .expect("ben is in the case")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debate_refers_to_one_snapshot_whatever_a_party_writes_meanwhile() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = disputed(&installation, SYNC_MS).await;
    let asked = told(client, &case, "ann", "memory_sync").await;
    assert_eq!(asked["payload"]["data"]["parties"], json!(["ann", "ben"]));
    granted(client, &remembers(&case, "ann", 1)).await;
    acknowledges(&case, "ann", &asked).publish(client).await;
    // Ben has acknowledged nothing, and writes all the time: the debate begins when the time is over.
    for value in 0..20 {
        granted(client, &remembers(&case, "ben", value)).await;
    }
    let released = told(client, &case, "ben", "memory_synced").await;
    let data = &released["payload"]["data"];
    assert_eq!(data["silent"], json!(["ben"]));
    let snapshot = data["snapshot"].as_str().expect("a snapshot").to_owned();
    let then = [
        seen(client, &snapshot, "ann").await,
        seen(client, &snapshot, "ben").await,
    ];
    assert_eq!(then[0]["entries"][0]["value"], 1);
    for (agent, value) in [("ann", 2), ("ben", 99)] {
        granted(client, &remembers(&case, agent, value)).await;
    }
    let now = [
        seen(client, &snapshot, "ann").await,
        seen(client, &snapshot, "ben").await,
    ];
    assert_eq!(now, then, "what was written later is not in it");

    // Every message of the debate carries it, and one that refers to another is told the right one.
    let question = hears(client, &case, "ann", |body| {
        body["message_type"] == "question"
    })
    .await;
    assert_eq!(question["metadata"]["memory_snapshot"], snapshot.as_str());
    let answer = |on: &str| {
        let answer = json!({ "agrees_with_peer": false, "reasoning": "As before." });
        Message::new(&case, "ann", FACILITATOR, "disagreement", answer)
            .with("/reply_to", question["message_id"].clone())
            .with("/metadata/memory_snapshot", on)
    };
    let pointer = "/metadata/memory_snapshot";
    let why = refused(client, &answer("snap_3"), "INVALID_REQUEST", pointer).await;
    assert!(why.contains("snap_3") && why.contains(&snapshot), "{why}");
    let future = refused(
        client,
        &answer("snap_999999999"),
        "INVALID_REQUEST",
        pointer,
    )
    .await;
    assert!(future.contains(&snapshot), "{future}");
    refused(client, &answer("yesterday"), "INVALID_REQUEST", pointer).await;
    answer(&snapshot).publish(client).await;
    let answered = hears(client, &case, "ben", |body| {
        body["message_type"] == "disagreement"
    })
    .await;
    assert_eq!(answered["metadata"]["memory_snapshot"], snapshot.as_str());
    installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facilitator_that_is_killed_meanwhile_leaves_nobody_waiting() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = disputed(&installation, SYNC_MS).await;
    let asked = told(client, &case, "ann", "memory_sync").await;
    acknowledges(&case, "ann", &asked).publish(client).await;
    wait_for("what ann has said", PATIENCE, async || {
        let flushed = event_data(client, "debate.*.flushed").await?;
        let first = flushed.first().map(|_| ());
        first.ok_or_else(|| "nothing".to_owned())
    })
    .await;
    installation.kill(Service::DebateFacilitator, 0).unwrap();
    installation
        .restart(Service::DebateFacilitator, 0)
        .await
        .unwrap();
    for party in ["ann", "ben"] {
        let released = told(client, &case, party, "memory_synced").await;
        assert_eq!(released["payload"]["data"]["silent"], json!(["ben"]));
    }
    let synced = event_data(client, "debate.*.synced").await.unwrap();
    assert_eq!(synced.len(), 1, "once");
    let question = hears(client, &case, "ben", |body| {
        body["message_type"] == "question"
    })
    .await;
    assert!(
        question["metadata"]["memory_snapshot"].is_string(),
        "{question}"
    );
    installation.holds(PATIENCE).await;
}

/// How long writes were held when every party acknowledges at once; printed.
#[tokio::test(flavor = "multi_thread")]
async fn a_debate_begins_as_soon_as_every_party_has_written() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let mut held = Vec::new();
    for _ in 0..10 {
        let case = disputed(&installation, 60_000).await;
        let at = |body: &Value| Timestamp::parse(body["timestamp"].as_str().unwrap()).unwrap();
        let mut asked_at = None;
        for party in ["ann", "ben"] {
            let asked = told(client, &case, party, "memory_sync").await;
            acknowledges(&case, party, &asked).publish(client).await;
            asked_at = Some(at(&asked));
        }
        let released = told(client, &case, "ann", "memory_synced").await;
        assert_eq!(released["payload"]["data"]["silent"], json!([]));
        held.push(at(&released).millis_since(asked_at.unwrap()));
    }
    held.sort_unstable();
    println!("writes were held for (ms): {held:?}");
    assert!(held.iter().all(|millis| *millis < 60_000), "{held:?}");
    installation.holds(PATIENCE).await;
}
