//! An installation, and agents with nothing but a NATS client.

use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_testkit::{Instance, Message, TestInstallation, instances, stored, unique, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::PATIENCE;

/// An installation whose agents speak plain NATS.
pub(crate) async fn start() -> TestInstallation {
    TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await
}

/// A card of an agent, with more besides its id.
pub(crate) fn card(agent: &str, more: &Value) -> Value {
    let mut card = json!({ "agent_id": agent });
    card.as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    card
}

/// A request to the coordinator.
pub(crate) fn to_coordinator(from: &str, action: &str, parameters: Value) -> Message {
    Message::new(
        "_",
        from,
        "coordinator",
        "request",
        json!({ "action": action, "parameters": parameters }),
    )
}

/// The one answer to a message, once there is one: what kind it is, and its payload.
pub(crate) async fn answer_to(client: &Client, message: &Message) -> (String, Value) {
    let found = until(
        format!("an answer to {}", message.id()),
        PATIENCE,
        async || {
            let answers = answers_to(client, message).await;
            answers
                .into_iter()
                .next()
                .ok_or_else(|| "there is none".to_owned())
        },
    );
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

/// All answers to a message so far.
pub(crate) async fn answers_to(client: &Client, message: &Message) -> Vec<(String, Value)> {
    let filter = format!("concord.v1.msg.*.*.{}.*", message.from);
    let said = stored(client, StreamKind::Messages, &filter).await.unwrap();
    let bodies = said.iter().map(|one| one.json());
    let answers = bodies.filter(|body| body["correlation_id"].as_str() == Some(message.id()));
    answers
        .map(|body| {
            (
                body["message_type"].as_str().unwrap().to_owned(),
                body["payload"].clone(),
            )
        })
        .collect()
}

/// Facts of one kind, in order.
pub(crate) async fn facts(client: &Client, aggregate: &str, fact: &str) -> Vec<Value> {
    let filter = format!("concord.v1.event.{aggregate}.*.{fact}");
    let stored = stored(client, StreamKind::Events, &filter).await.unwrap();
    stored
        .iter()
        .map(|one| one.json()["data"].clone())
        .collect()
}

/// How the coordinator says that an agent is; none when it is not on the register.
pub(crate) async fn status(installation: &TestInstallation, agent: &str) -> Option<String> {
    let listed = installation
        .ask(Service::Coordinator, "agents", &Value::Null)
        .await
        .ok()?;
    let one = listed
        .as_array()?
        .iter()
        .find(|one| one["agent_id"] == agent)?
        .clone();
    one["status"].as_str().map(str::to_owned)
}

/// Waits until an agent has this status.
pub(crate) async fn becomes(installation: &TestInstallation, agent: &str, expected: Option<&str>) {
    let reached = until(
        format!("{agent} to be {expected:?}"),
        PATIENCE,
        async || {
            let found = status(installation, agent).await;
            if found.as_deref() == expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        },
    );
    reached.await.unwrap_or_else(|error| panic!("{error}"));
}

/// Names that no other test has.
pub(crate) fn names<const N: usize>(names: [&str; N]) -> [String; N] {
    names.map(unique)
}

/// What each of so many replicas of a service answers to HTTP on this path.
pub(crate) async fn read(
    installation: &TestInstallation,
    (service, replicas): (Service, usize),
    path: &str,
) -> Vec<String> {
    let name = format!("concord-{service}");
    let enough =
        |found: &[Instance]| found.iter().filter(|one| one.name == name).count() == replicas;
    let found = instances(installation.client(), PATIENCE, enough)
        .await
        .expect("all replicas answer");
    let mut texts = Vec::new();
    for one in found.iter().filter(|one| one.name == name) {
        let address = one.http().expect("it answers HTTP");
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        texts.push(text);
    }
    texts
}
