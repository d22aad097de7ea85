//! The replicas of the adapter count how agents help each other: together they count each message once.

use concord_testkit::{Message, TestInstallation, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::exchange::PATIENCE;
use crate::exchange::stage::{http_answers, names, register};

/// The metrics of every replica.
async fn metrics(installation: &TestInstallation) -> Vec<String> {
    http_answers(installation, (Service::AgentAdapter, 2), "/metrics").await
}

/// The value of a metric, summed over these texts.
fn sum(texts: &[String], name: &str) -> u64 {
    let values = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix(name));
    values
        .filter_map(|value| value.strip_prefix(' ')?.trim().parse::<u64>().ok())
        .sum()
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
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 2)
            .with_service_setting(Service::AgentAdapter, "service.coordination.enabled=true")
    })
    .await;
    let client = installation.client();
    for (agent, tags) in [(&ben, json!([])), (&lea, json!(["lead"]))] {
        let skills = json!({ "skills": [{ "name": "work", "tags": tags }] });
        register(&installation, agent, &skills).await;
    }
    metrics(&installation).await;
    // Each question is a case of its own; every other one is declined.
    for number in 0..20 {
        let case = format!("c-{number}");
        let payload = json!({ "content": "Help!" });
        let asked = Message::new(&case, &ann, &ben, "peer_request", payload);
        asked.publish(client).await;
        let payload = json!({ "accepted": number % 2 == 0 });
        let answer =
            Message::new(&case, &ben, &ann, "info_update", payload).with("/reply_to", asked.id());
        answer.publish(client).await;
    }
    let payload = json!({ "content": "Go on." });
    Message::new("_", &lea, &ann, "info_update", payload)
        .publish(client)
        .await;

    // 20 requests, and 10 answers that decline none, are collaboration.
    let expected = [40, 1, 30, 21, 20, 10, 10, 10, 10];
    let texts = wait_for("everything to be counted once", PATIENCE, async || {
        let texts = metrics(&installation).await;
        let found = NAMES.map(|name| sum(&texts, name));
        if found == expected {
            Ok(texts)
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    let counting = texts.iter().filter(|text| {
        let text = std::slice::from_ref(*text);
        sum(text, NAMES[0]) > 0
    });
    assert_eq!(counting.count(), 1, "one replica counts");
    installation.holds(PATIENCE).await;
}
