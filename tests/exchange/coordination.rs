//! What the replicas of the adapter count of how agents help each other: each message once, among all of them.

use concord_testkit::{Message, TestInstallation, until};
use concord_wire::subject::Service;
use serde_json::json;

use crate::PATIENCE;
use crate::stage::{becomes, card, names, read, to_coordinator};

/// The text of `/metrics` of every replica.
async fn texts(installation: &TestInstallation) -> Vec<String> {
    read(installation, (Service::AgentAdapter, 2), "/metrics").await
}

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
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 2)).await;
    let client = installation.client();
    for (agent, tags) in [(&ben, json!([])), (&lea, json!(["lead"]))] {
        let skills = json!({ "skills": [{ "name": "work", "tags": tags }] });
        to_coordinator(agent, "register_agent", card(agent, &skills))
            .publish(client)
            .await;
        becomes(&installation, agent, Some("available")).await;
    }
    texts(&installation).await;
    // Each question is a case of its own; every other one is declined.
    for number in 0..20 {
        let case = format!("c-{number}");
        let asked = Message::new(
            &case,
            &ann,
            &ben,
            "peer_request",
            json!({ "content": "Help!" }),
        );
        asked.publish(client).await;
        let payload = json!({ "accepted": number % 2 == 0 });
        let answer =
            Message::new(&case, &ben, &ann, "info_update", payload).with("/reply_to", asked.id());
        answer.publish(client).await;
    }
    Message::new(
        "_",
        &lea,
        &ann,
        "info_update",
        json!({ "content": "Go on." }),
    )
    .publish(client)
    .await;

    // 20 requests, and 10 answers that decline none, are collaboration.
    let expected = [40, 1, 30, 21, 20, 10, 10, 10, 10];
    let counted = until("everything to be counted once", PATIENCE, async || {
        let texts = texts(&installation).await;
        let found = NAMES.map(|name| sum(&texts, name));
        if found == expected {
            Ok(texts)
        } else {
            Err(format!("{found:?}"))
        }
    });
    let texts = counted.await.unwrap_or_else(|error| panic!("{error}"));
    for text in &texts {
        assert!(
            sum(std::slice::from_ref(text), NAMES[0]) > 0,
            "both replicas have a part in it"
        );
    }
    installation.holds(PATIENCE).await;
}
