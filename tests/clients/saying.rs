//! What an agent of the Rust library says of itself, and what it says again.

use std::time::Duration;

use async_nats::jetstream;
use concord_agent::payload::{AgentStatus, Card};
use concord_agent::{Agent, AgentId, Error, MessageType, Recipient};
use concord_testkit::{TestInstallation, concord, message_bodies, wait_for};
use serde_json::{Value, json};

use crate::clients::stage::{PATIENCE, Stage};

fn coordinator() -> Recipient {
    Recipient::Agent(AgentId::new("coordinator").expect("a name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn how_an_agent_is_the_coordinator_is_told_by_a_message_and_closing_says_no_more() {
    let stage = Stage::start().await;
    let connected = Agent::builder("ann").connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    agent.status(AgentStatus::Busy).await.expect("it is stored");
    agent.close().await.expect("it is closed");
    let told = message_bodies(&stage.client, "concord.v1.msg._.ann.coordinator.status").await;
    let told = told.expect("messages");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["payload"], json!({ "status": "busy" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_under_the_same_id_is_heard_again() {
    let stage = Stage::start().await;
    let connected = Agent::builder("ann").connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    let request = json!({ "action": "sum", "parameters": {} });
    let request = agent.message(coordinator(), MessageType::Request, &request);
    let request = request.expect("a message");
    for _ in 0..2 {
        let asked = agent.ask(request.clone(), Duration::from_millis(10)).await;
        assert!(matches!(asked, Err(Error::Timeout { .. })), "{asked:?}");
    }
    let stored = message_bodies(&stage.client, "concord.v1.msg._.ann.coordinator.request").await;
    let ids: Vec<_> = stored.expect("messages").iter().map(id_of).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
    agent.close().await.expect("it is closed");
}

/// A stream that acknowledges nothing is as good as a connection on which acknowledgements are lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_waited_for_though_the_broker_does_not_say_that_it_has_the_request() {
    let stage = Stage::start().await;
    let connected = Agent::builder("ann").connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    let context = jetstream::new(stage.client.clone());
    let stream = context.get_stream("CONCORD_MESSAGES").await;
    let config = stream.expect("messages").cached_info().config.clone();
    let silent = jetstream::stream::Config {
        no_ack: true,
        ..config
    };
    context.update_stream(silent).await.expect("it is changed");
    let bob = Agent::builder("bob").on(MessageType::Request, |bob, request| async move {
        // Nor does bob hear whether this is stored.
        drop(bob.respond(&request, &json!({ "sum": 3 })).await);
        Ok(())
    });
    let bob = bob.connect(&stage.broker.url()).await.expect("it connects");
    // Its subscriptions are with the broker then.
    drop(bob.status(AgentStatus::Available).await);
    let to = || Recipient::Agent(AgentId::new("bob").expect("a name"));
    let request = json!({ "action": "sum", "parameters": {} });
    let request = agent.message(to(), MessageType::Request, &request);
    let answer = agent.ask(request.expect("a message"), PATIENCE).await;
    assert_eq!(answer.expect("an answer"), json!({ "sum": 3 }));
    let nobody = agent.message(
        coordinator(),
        MessageType::Request,
        &json!({ "action": "x" }),
    );
    let unsure = agent.ask(nobody.expect("a message"), Duration::ZERO).await;
    let why = unsure.expect_err("nobody answers").to_string();
    assert!(why.contains("did not say in time whether"), "{why}");
    agent.close().await.expect("it is closed");
    bob.close().await.expect("it is closed");
}

fn id_of(message: &Value) -> Value {
    message["message_id"].clone()
}

/// The names on the register.
fn registered(installation: &TestInstallation) -> Value {
    let done = concord(&["agents", "--json", "--server", installation.server_url()]);
    let listed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let names = listed["registered"].as_array().into_iter().flatten();
    names.map(|one| one["agent_id"].clone()).collect()
}

/// Of two processes that follow each other the first one closes when the second has registered.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_stays_registered_is_there_when_its_process_is_replaced() {
    let installation = TestInstallation::start_without_adapter().await;
    let card = |stays: bool| {
        let card = Card::new(AgentId::new("ann").expect("a name"));
        let builder = Agent::builder("ann").card(card);
        match stays {
            true => builder.stays_registered(),
            false => builder,
        }
    };
    let url = installation.server_url();
    let first = card(true).connect(url).await.expect("it connects");
    let second = card(false).connect(url).await.expect("it connects");
    first.close().await.expect("it is closed");
    assert_eq!(registered(&installation), json!(["ann"]));
    second.close().await.expect("it is closed");
    wait_for("ann has left", PATIENCE, async || {
        let names = registered(&installation);
        (names == json!([])).then_some(()).ok_or(names.to_string())
    })
    .await;
    let said = message_bodies(
        installation.client(),
        "concord.v1.msg._.ann.coordinator.request",
    );
    let said = said.await.expect("messages");
    let left = said
        .iter()
        .filter(|one| one["payload"]["action"] == "deregister_agent");
    assert_eq!(left.count(), 1, "the second alone");
}
