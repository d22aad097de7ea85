//! Helpers of the tests in this folder: agents on plain NATS that answer what they are asked, and whoever opens tasks.

use std::collections::HashSet;

use async_nats::Client;
use concord_testkit::{Message, TestInstallation, message_bodies, wait_for};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::tasks::PATIENCE;

/// What an agent answers: the type of the message, and its payload.
pub(crate) type Reply = Option<(&'static str, Value)>;

/// An agent that reads its inbox by a plain subscription until it is dropped.
pub(crate) struct Worker(JoinHandle<()>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Registers an agent, and answers its messages with what `answer` makes of their type and body. What a killed service publishes again
/// reaches plain subscribers again, with the same id, though the stream keeps one: the second is dropped, as agents must.
pub(crate) async fn work(
    installation: &TestInstallation,
    name: &'static str,
    card: Value,
    answer: impl Fn(&str, &Value) -> Reply + Send + 'static,
) -> Worker {
    let client = installation.client().clone();
    let subject = format!("concord.v1.msg.*.*.{name}.*");
    let mut inbox = client.subscribe(subject).await.unwrap();
    let speaker = client.clone();
    let worker = tokio::spawn(async move {
        let mut seen = HashSet::new();
        while let Some(message) = inbox.next().await {
            let body: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            if !seen.insert(body["message_id"].to_string()) {
                continue;
            }
            let kind = body["message_type"].as_str().unwrap_or_default();
            if let Some((kind, payload)) = answer(kind, &body) {
                reply(name, &body, kind, payload).publish(&speaker).await;
            }
        }
    });
    register(&client, name, card).await;
    Worker(worker)
}

/// Registers an agent that answers nothing by itself.
pub(crate) async fn register(client: &Client, name: &str, mut card: Value) {
    card["agent_id"] = json!(name);
    let (kind, answer) = ask(client, &to_coordinator(name, "register_agent", card)).await;
    assert_eq!(kind, "response", "{answer}");
}

/// The answer of an agent to a message.
pub(crate) fn reply(from: &str, to: &Value, kind: &str, payload: Value) -> Message {
    Message::new("_", from, "coordinator", kind, payload)
        .with("/reply_to", to["message_id"].clone())
}

/// A request to the coordinator.
pub(crate) fn to_coordinator(from: &str, action: &str, parameters: Value) -> Message {
    let payload = json!({ "action": action, "parameters": parameters });
    Message::new("_", from, "coordinator", "request", payload)
}

/// A request to open a task, with what is usual.
pub(crate) fn opening(strategy: &str, more: &Value) -> Message {
    let mut terms = json!({ "strategy": strategy, "task": { "type": "sum", "input": [1, 2] }, "deadline_ms": 60_000 });
    let fields = terms.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap_or_default());
    to_coordinator("olga", "open_task", terms)
}

/// Publishes a message, and waits for its first answer: type and payload.
pub(crate) async fn ask(client: &Client, message: &Message) -> (String, Value) {
    message.publish(client).await;
    nth_answer(client, message, 0).await
}

/// Opens a task, and waits for its end: the second answer, after the one that it is open.
pub(crate) async fn run(client: &Client, message: &Message) -> (String, Value) {
    let (kind, opened) = ask(client, message).await;
    assert_eq!(kind, "response", "{opened}");
    nth_answer(client, message, 1).await
}

/// The answer at a place among those to a message.
pub(crate) async fn nth_answer(
    client: &Client,
    message: &Message,
    place: usize,
) -> (String, Value) {
    let what = format!("answer {place} to {}", message.id());
    wait_for(what, PATIENCE, async || {
        let filter = format!("concord.v1.msg.*.*.{}.*", message.from);
        let mut answers = message_bodies(client, &filter).await.unwrap();
        answers.retain(|body| body["correlation_id"].as_str() == Some(message.id()));
        let found = answers.get(place).map(|body| {
            let kind = body["message_type"].as_str().unwrap().to_owned();
            (kind, body["payload"].clone())
        });
        found.ok_or_else(|| format!("{} answers", answers.len()))
    })
    .await
}

/// Waits for a message to an agent that is as `wanted` says.
pub(crate) async fn hears(client: &Client, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let filter = format!("concord.v1.msg.*.*.{name}.*");
    wait_for(format!("a message to {name}"), PATIENCE, async || {
        let bodies = message_bodies(client, &filter).await.unwrap();
        let count = bodies.len();
        let found = bodies.into_iter().find(&wanted);
        found.ok_or_else(|| format!("it is none of {count}"))
    })
    .await
}

/// Waits for an assignment or award of a task, given by the id of the task.
pub(crate) async fn assignment(client: &Client, name: &str, task_id: &str) -> Value {
    hears(client, name, |body| {
        body["payload"]["work"]["task_id"] == task_id
    })
    .await
}

/// A result of a task.
pub(crate) fn result(value: Value) -> Reply {
    Some(("task_result", json!({ "result": value })))
}
