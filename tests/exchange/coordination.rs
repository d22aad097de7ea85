//! What the replicas of the adapter count of how agents help each other: each message once, among all of them.

use concord_protocol::subject::Service;
use concord_testkit::{Message, TestInstallation, instances, until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::PATIENCE;
use crate::stage::{becomes, card, names, to_coordinator};

/// The text of `/metrics` of every replica.
async fn texts(installation: &TestInstallation) -> Vec<String> {
    let is_adapter = |name: &str| name == "concord-agent-adapter";
    let found = instances(installation.client(), PATIENCE, |found| {
        found.iter().filter(|one| is_adapter(&one.name)).count() == 2
    });
    let mut texts = Vec::new();
    for one in found.await.expect("both replicas answer").iter().filter(|one| is_adapter(&one.name)) {
        let address = one.http().expect("it answers HTTP");
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        texts.push(text);
    }
    texts
}

fn sum(texts: &[String], name: &str) -> u64 {
    let values = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix(name));
    values.filter_map(|value| value.strip_prefix(' ')?.trim().parse::<u64>().ok()).sum()
}

const NAMES: [&str; 9] = [
    "concord_agent_messages_total{route=\"peer\"}",
    "concord_agent_messages_total{route=\"lead\"}",
    "concord_collaboration_events_total",
    "concord_sessions_total",
    "concord_peer_help_total{result=\"asked\"}",
    "concord_peer_help_total{result=\"answered\"}",
    "concord_peer_help_seconds_count",
    "concord_wake_feedback_total{by=\"name\",feedback=\"accepted\"}",
    "concord_wake_feedback_total{by=\"name\",feedback=\"declined\"}",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_message_counts_in_one_replica_and_answers_find_their_questions() {
    let [ann, ben, lea] = names(["ann", "ben", "lea"]);
    let installation = TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 2)).await;
    let client = installation.client();
    for (agent, tags) in [(&ben, json!([])), (&lea, json!(["lead"]))] {
        let skills = json!({ "skills": [{ "name": "work", "tags": tags }] });
        to_coordinator(agent, "register_agent", card(agent, &skills)).publish(client).await;
        becomes(&installation, agent, Some("available")).await;
    }
    texts(&installation).await;
    // Each question is a case of its own; every other one is declined.
    for number in 0..20 {
        let case = format!("c-{number}");
        let asked = Message::new(&case, &ann, &ben, "peer_request", json!({ "content": "Help!" }));
        asked.publish(client).await;
        let payload = json!({ "accepted": number % 2 == 0 });
        let answer = Message::new(&case, &ben, &ann, "info_update", payload).with("/reply_to", asked.id());
        answer.publish(client).await;
    }
    Message::new("_", &lea, &ann, "info_update", json!({ "content": "Go on." })).publish(client).await;

    // 20 requests, and 10 answers that decline none, are collaboration.
    let expected = [40, 1, 30, 21, 20, 10, 10, 10, 10];
    let counted = until("everything to be counted once", PATIENCE, async || {
        let texts = texts(&installation).await;
        let found = NAMES.map(|name| sum(&texts, name));
        if found == expected { Ok(texts) } else { Err(format!("{found:?}")) }
    });
    let texts = counted.await.unwrap_or_else(|error| panic!("{error}"));
    for text in &texts {
        assert!(sum(std::slice::from_ref(text), NAMES[0]) > 0, "both replicas have a part in it");
    }
    installation.holds(PATIENCE).await;
}
