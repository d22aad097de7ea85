//! Helpers of the tests in this folder: agents on plain NATS that answer what wakes them, and whoever asks.

use async_nats::Client;
use concord_testkit::{
    CommandOutput, Message, TestInstallation, concord_at, knows_agents, message_bodies, round_trip,
    settled, wait_for,
};
use concord_wire::subject::Service;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::questions::PATIENCE;
pub(crate) use crate::tasks::stage::hears;

/// What an agent answers: the type of the message, its payload, and how sure it is.
pub(crate) type Reply = Option<(&'static str, Value, f64)>;

/// An agent that reads its inbox by a plain subscription until it is dropped.
pub(crate) struct Answerer(JoinHandle<()>);

impl Drop for Answerer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer in words.
pub(crate) fn says(text: &str, confidence: f64) -> Reply {
    Some(("response", response(text), confidence))
}

/// The payload of an answer in words.
pub(crate) fn response(text: &str) -> Value {
    json!({ "status": "success", "result": { "content": text } })
}

/// Answers what wakes an agent, and what it is asked to synthesise, with what `answer` makes of the message.
pub(crate) async fn answers(
    installation: &TestInstallation,
    name: &'static str,
    answer: impl Fn(&Value) -> Reply + Send + 'static,
) -> Answerer {
    let client = installation.client().clone();
    let subject = format!("concord.v1.msg.*.*.{name}.*");
    let mut inbox = client.subscribe(subject).await.unwrap();
    // Whoever asks may do so by another connection.
    round_trip(&client).await;
    let answerer = tokio::spawn(async move {
        while let Some(message) = inbox.next().await {
            let body: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            let asked = match body["payload"]["event"].as_str() {
                Some("woken") => body["payload"]["data"]["message"].clone(),
                _ if body["message_type"] == "request" => body,
                _ => continue,
            };
            if let Some((kind, payload, confidence)) = answer(&asked) {
                let reply = reply(name, &asked, kind, payload, confidence);
                reply.publish(&client).await;
            }
        }
    });
    Answerer(answerer)
}

/// The answer of an agent to a message.
pub(crate) fn reply(
    from: &str,
    asked: &Value,
    kind: &str,
    payload: Value,
    confidence: f64,
) -> Message {
    let to = asked["from_agent"].as_str().unwrap();
    let case = asked["case_id"].as_str().unwrap_or("_");
    Message::new(case, from, to, kind, payload)
        .with("/reply_to", asked["message_id"].clone())
        .with("/metadata/confidence", json!(confidence))
}

/// Registers agents by their names, which is enough to be mentioned, and waits until everybody knows them.
pub(crate) async fn register(installation: &TestInstallation, names: &[&str]) {
    for name in names {
        let request = json!({ "action": "register_agent", "parameters": { "agent_id": name } });
        Message::new("_", name, "coordinator", "request", request)
            .publish(installation.client())
            .await;
    }
    wait_for("the agents on the register", PATIENCE, async || {
        let agents = Service::Coordinator;
        let listed = installation.ask(agents, "agents", &Value::Null).await?;
        match listed
            .as_array()
            .is_some_and(|all| all.len() == names.len())
        {
            true => Ok(()),
            false => Err(listed.to_string()),
        }
    })
    .await;
    settled(installation.client(), PATIENCE).await.unwrap();
    // Their cards reach the adapter by themselves.
    knows_agents(installation, PATIENCE).await;
}

/// What `concord ask` makes of a question in the name of eva.
pub(crate) async fn ask(
    installation: &TestInstallation,
    question: &str,
    options: &[&str],
) -> CommandOutput {
    let fixed = ["ask", question, "--by", "eva"];
    concord_at(installation.server_url(), &[&fixed, options].concat()).await
}

/// The messages to somebody that answer a message, each with who it is from.
pub(crate) async fn answers_to(client: &Client, to: &str, asked: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.*.{to}.*");
    let mut bodies = message_bodies(client, &filter).await.unwrap();
    bodies.retain(|body| body["reply_to"].as_str() == Some(asked));
    bodies
}

/// The one answer of the coordinator to a question.
pub(crate) async fn end_of(client: &Client, to: &str, asked: &str) -> Value {
    wait_for(format!("the end of {asked}"), PATIENCE, async || {
        let mut told = answers_to(client, to, asked).await;
        told.retain(|body| body["from_agent"] == "coordinator");
        assert!(told.len() <= 1, "it ends once: {told:?}");
        told.pop().ok_or_else(|| "it has not ended".to_owned())
    })
    .await
}
