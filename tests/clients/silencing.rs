//! Whoever foresees the id of an answer does not keep it from being stored.

use async_nats::HeaderMap;
use async_nats::jetstream;
use concord_agent::{Agent, MessageType};
use concord_testkit::{message_bodies, wait_for};
use serde_json::json;

use crate::python::Driver;
use crate::stage::{PATIENCE, Stage};
use crate::trouble::{ask, next_to};

/// Mallory publishes something of her own under this id, before anybody else does.
async fn take_id(stage: &Stage, id: &str) {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", id);
    let sent = jetstream::new(stage.client.clone())
        .publish_with_headers(
            "concord.v1.msg._.mallory.nobody.status",
            headers,
            "{}".into(),
        )
        .await;
    let stored = sent.expect("it is sent").await.expect("it is stored");
    assert!(!stored.duplicate);
}

/// Ann is asked twice by the same message, and answers it twice: her answer is stored, once.
async fn check_is_stored_once(stage: &mut Stage) {
    take_id(stage, "r-1-ann").await;
    for request in ["r-1", "r-1", "r-2"] {
        ask(stage, request, "answer").await;
        next_to(stage, "zoe").await;
    }
    let ids = wait_for("the last answer", PATIENCE, async || {
        let stored = message_bodies(&stage.client, "concord.v1.msg._.ann.zoe.response").await?;
        let ids: Vec<_> = stored
            .iter()
            .map(|body| body["message_id"].clone())
            .collect();
        match ids.last() {
            Some(last) if last == "r-2-ann" => Ok(ids),
            _ => Err(format!("{ids:?}")),
        }
    })
    .await;
    assert_eq!(ids, [json!("r-1-ann"), json!("r-2-ann")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_what_a_rust_agent_says_from_being_stored() {
    let mut stage = Stage::start().await;
    let builder = Agent::builder("ann")
        .durable()
        .on(MessageType::Request, |agent, request| async move {
            agent.respond(&request, &json!({})).await
        });
    let connected = builder.connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    check_is_stored_once(&mut stage).await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_keeps_what_a_python_agent_says_from_being_stored() {
    let mut stage = Stage::start().await;
    let driver = Driver::of("trouble.py", &[&stage.broker.url(), "waiting"]).await;
    check_is_stored_once(&mut stage).await;
    driver.end().await;
}
