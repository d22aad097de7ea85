//! A durable inbox that is gone, or whose stream was made anew, is made again.

use async_nats::jetstream;
use concord_agent::{Agent, AgentId, Message, MessageType};
use concord_events::topology::Layout;
use concord_wire::subject::Lane;
use serde_json::json;
use tokio::time::timeout;

use crate::clients::stage::{PATIENCE, Stage};
use crate::clients::trouble::{ask, next_to};

async fn durable(stage: &Stage) -> Agent {
    let builder = Agent::builder("ann").durable();
    let builder = builder.on(
        MessageType::Request,
        |agent: Agent, request: Message| async move { agent.respond(&request, &json!({})).await },
    );
    let agent = builder.connect(&stage.broker.url()).await;
    agent.expect("it connects")
}

/// Waits for the answer to this request, and to no other.
async fn is_answered(stage: &mut Stage, id: &str) {
    let answered = timeout(PATIENCE, next_to(stage, "zoe")).await;
    let (_, answer) = answered.unwrap_or_else(|_| panic!("{id} is not heard"));
    assert_eq!(answer["reply_to"], id, "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_hears_what_is_said_after_somebody_has_deleted_its_inbox() {
    let mut stage = Stage::start().await;
    let (stream, consumer, _) = Layout::default().agent_inbox(Lane::Normal, &AgentId::fixed("ann"));
    let stream = Layout::default().stream_name(stream);
    let stream = jetstream::new(stage.client.clone())
        .get_stream(stream)
        .await;
    let stream = stream.expect("the stream is there");
    ask(&stage, "r-before", "a").await;
    let agent = durable(&stage).await;
    // Before anything has come, and afterwards.
    for id in ["r-1", "r-2"] {
        stream
            .delete_consumer(&consumer)
            .await
            .expect("it is deleted");
        ask(&stage, id, "a").await;
        is_answered(&mut stage, id).await;
    }
    ask(&stage, "r-3", "a").await;
    is_answered(&mut stage, "r-3").await;
    agent.close().await.expect("it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_agent_hears_what_is_said_after_its_stream_was_made_anew() {
    let mut stage = Stage::start().await;
    let agent = durable(&stage).await;
    ask(&stage, "r-1", "a").await;
    is_answered(&mut stage, "r-1").await;
    let context = jetstream::new(stage.client.clone());
    let (stream, _, _) = Layout::default().agent_inbox(Lane::Normal, &AgentId::fixed("ann"));
    let name = Layout::default().stream_name(stream);
    let mut stream = context.get_stream(&name).await.expect("it is there");
    let config = stream.info().await.expect("what it is").config.clone();
    context.delete_stream(&name).await.expect("it is deleted");
    context.create_stream(config).await.expect("it is made");
    for id in ["r-2", "r-3"] {
        ask(&stage, id, "a").await;
        is_answered(&mut stage, id).await;
    }
    agent.close().await.expect("it is closed");
}
