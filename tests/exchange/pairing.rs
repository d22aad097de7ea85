//! Requests whose answers name them by the `correlation_id` that the requests themselves have, as specification 5 has it.

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, message_bodies, settled};
use serde_json::{Value, json};

use crate::exchange::PATIENCE;
use crate::exchange::stage::{in_millis, names, request, requests_with};

/// A request with a `correlation_id` of its own that must be answered within as many seconds as a slow machine needs to store a
/// few messages, and more.
fn asked(from: &str, to: &str, correlation: &str) -> Message {
    request(from, to, "ponder", json!({}))
        .with("/correlation_id", json!(correlation))
        .with("/deadline", json!(in_millis(8_000)))
}

async fn answer(client: &Client, from: &str, to: &str, correlation: &str) -> Message {
    let payload = json!({ "status": "success", "result": {} });
    let answer = Message::new("_", from, to, "response", payload)
        .with("/correlation_id", json!(correlation));
    answer.publish(client).await;
    answer
}

/// The errors that an agent was sent about its requests: which requests.
async fn errors_to(client: &Client, agent: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.*.{agent}.error");
    let errors = message_bodies(client, &filter).await.unwrap();
    errors
        .into_iter()
        .map(|error| error["reply_to"].clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_name_the_correlation_id_that_the_request_has() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let [ann, bob, eve] = names(["ann", "bob", "eve"]);

    // Of two requests with one id an answer is for the last before it.
    let first = asked(&ann, &bob, "shared");
    let second = asked(&ann, &bob, "shared");
    let alone = asked(&ann, &bob, "alone");
    for message in [&first, &second, &alone] {
        message.publish(client).await;
    }
    // Somebody else's answer is none.
    answer(client, &eve, &ann, "alone").await;
    let given = [
        (&second, answer(client, &bob, &ann, "shared").await),
        (&alone, answer(client, &bob, &ann, "alone").await),
    ];

    let answered = requests_with(&installation, "answered", 2).await;
    for (request, answer) in given {
        let event = answered
            .iter()
            .find(|event| event["request"]["request_id"] == request.id());
        assert_eq!(
            event.map(|event| &event["answer"]["message_id"]),
            Some(&json!(answer.id())),
            "{answered:?}"
        );
    }
    let failed = requests_with(&installation, "failed", 1).await;
    assert_eq!(failed[0]["request"]["request_id"], first.id());
    settled(client, PATIENCE).await.unwrap();
    assert_eq!(errors_to(client, &ann).await, [json!(first.id())]);
    installation.holds(PATIENCE).await;
}
