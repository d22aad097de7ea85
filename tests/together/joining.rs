//! An agent that joins a case later is briefed by itself, and every agent has a context window of its own.

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, message_bodies, wait_for};
use serde_json::{Value, json};

use crate::together::{PATIENCE, asks, asks_of, case_of, command, granted, refused, told};

/// What a briefing says while nobody of three has found anything.
const SO_FAR: &str = "0 of 3 findings are there.";

fn add(case: &str, from: &str, name: &str) -> Message {
    let parameters = json!({ "agent_id": name });
    let payload = json!({ "action": "add_participant", "parameters": parameters });
    Message::new(case, from, "coordinator", "request", payload)
}

async fn says(client: &Client, case: &str, (from, to): (&str, &str), text: &str) {
    let payload = json!({ "text": text });
    let said = Message::new(case, from, to, "info_update", payload);
    said.publish(client).await;
}

fn texts(window: &Value) -> Vec<String> {
    let messages = window["messages"].as_array().unwrap();
    let text = |one: &Value| one["text"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

/// Waits until the window of an agent has these texts.
async fn sees(client: &Client, case: &str, name: &str, expected: &[&str]) {
    let context = ("agent-adapter", "context");
    wait_for(format!("the window of {name}"), PATIENCE, async || {
        let read = asks_of(client, context, name, json!({ "case_id": case })).await;
        let seen = texts(&read.map_err(|error| error.to_string())?);
        (seen == expected)
            .then_some(())
            .ok_or_else(|| format!("{seen:?}"))
    })
    .await;
}

/// The briefing and the task that whoever has joined is sent, and nothing else.
async fn check_briefing(client: &Client, case: &str, name: &str) {
    let filter = format!("concord.v1.msg.{case}.coordinator.{name}.*");
    let sent = wait_for(format!("what {name} is sent"), PATIENCE, async || {
        let mut sent = message_bodies(client, &filter).await?;
        // She was refused before.
        sent.retain(|body| body["message_type"] != "error");
        (sent.len() == 2)
            .then_some(sent)
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
    let kinds: Vec<&Value> = sent.iter().map(|one| &one["message_type"]).collect();
    assert_eq!(kinds, ["session_briefing", "task_assignment"]);
    let briefing = &sent[0]["payload"];
    assert_eq!(briefing["participants"], json!(["ann", "ben", name]));
    assert_eq!(briefing["so_far"], SO_FAR);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_later_is_briefed_and_sees_what_is_said_from_then_on() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let case = &case_of(&installation, &["ann", "ben"]).await;
    says(client, case, ("ann", "_all"), "said before").await;
    sees(client, case, "ben", &["said before"]).await;
    says(client, case, ("ann", "ben"), "between two").await;
    sees(client, case, "ben", &["said before", "between two"]).await;

    // Nobody lets themself in.
    let herself = add(case, "cleo", "cleo");
    refused(client, &herself, "UNAUTHORIZED", "/from_agent").await;
    let shown = command(&installation, &["case", "show", case]).unwrap();
    let opener = shown["opened_by"].as_str().unwrap();
    let joined = granted(client, &add(case, opener, "cleo")).await;
    assert_eq!(joined, json!({ "agent_id": "cleo" }));
    let is_cleo = |data: &Value| data["agent_id"] == "cleo";
    told(client, (case, "_all"), "case_joined", is_cleo).await;
    check_briefing(client, case, "cleo").await;
    // What is said later reaches her window. What was said before does not, nor what others tell each other.
    sees(client, case, "cleo", &[SO_FAR]).await;
    says(client, case, ("ben", "_all"), "said after").await;
    // Each kind of recipient has a consumer of its own, so one message waits for the other here.
    let hers = [SO_FAR, "said after"];
    sees(client, case, "cleo", &hers).await;
    says(client, case, ("ann", "ben"), "again between two").await;
    let all = [
        "said before",
        "between two",
        "said after",
        "again between two",
    ];
    sees(client, case, "ann", &all).await;
    sees(client, case, "cleo", &hers).await;
    check_commands(&installation, case).await;
    installation.holds(PATIENCE).await;
}

/// Nobody reads the window of another but operators, who also let agents in.
async fn check_commands(installation: &TestInstallation, case: &str) {
    let client = installation.client();
    let asked = json!({ "case_id": case, "agent_id": "ben" });
    let peeped = asks_of(client, ("agent-adapter", "context"), "cleo", asked).await;
    assert_eq!(peeped.unwrap_err()["error_code"], "UNAUTHORIZED");
    // She is in the case: she reads what it shares.
    let briefing = asks(client, "cleo", "briefing", json!({ "case_id": case })).await;
    assert_eq!(briefing.unwrap()["so_far"], SO_FAR);

    let window = |name| command(installation, &["case", "context", case, "--agent", name]);
    assert_eq!(texts(&window("cleo").unwrap()), [SO_FAR, "said after"]);
    let stranger = window("mallory").unwrap_err();
    assert!(stranger.contains("takes no part"), "{stranger}");
    let add = || command(installation, &["case", "add", case, "dan", "--by", "opal"]);
    add().unwrap();
    let twice = add().unwrap_err();
    assert!(twice.contains("takes part in the case already"), "{twice}");
    let shown = command(installation, &["case", "show", case]).unwrap();
    assert_eq!(shown["participants"], json!(["ann", "ben", "cleo", "dan"]));
}
