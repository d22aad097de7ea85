//! Helpers of the tests in this folder: messages of agents that have only a NATS client, and their answers.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use async_nats::Client;
use concord_testkit::{
    Instance, Message, TestInstallation, event_data, http_get, instances, knows_agents,
    message_bodies, settled, unique, wait_for,
};
use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::exchange::PATIENCE;

/// A time so many milliseconds from now.
pub(crate) fn in_millis(millis: u64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_millis(i64::try_from(now.as_millis()).unwrap()).plus_millis(millis)
}

/// The card of an agent: its id, and the fields of `more`.
pub(crate) fn card(agent: &str, more: &Value) -> Value {
    let mut card = json!({ "agent_id": agent });
    card.as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    card
}

/// A request of an agent to the coordinator.
pub(crate) fn to_coordinator(from: &str, action: &str, parameters: Value) -> Message {
    request(from, "coordinator", action, parameters)
}

/// A request of an agent to another.
pub(crate) fn request(from: &str, to: &str, action: &str, parameters: Value) -> Message {
    let payload = json!({ "action": action, "parameters": parameters });
    Message::new("_", from, to, "request", payload)
}

/// A successful response of `from` to the request with this body.
pub(crate) fn response(request: &Value, from: &str) -> Message {
    let asker = request["from_agent"].as_str().unwrap();
    let payload = json!({ "status": "success", "result": { "done": true } });
    Message::new("_", from, asker, "response", payload)
        .with("/correlation_id", request["message_id"].clone())
}

/// Registers an agent with the fields of `more` on its card, and waits until it is available.
pub(crate) async fn register(installation: &TestInstallation, agent: &str, more: &Value) {
    to_coordinator(agent, "register_agent", card(agent, more))
        .publish(installation.client())
        .await;
    wait_for_status(installation, agent, Some("available")).await;
    settled(installation.client(), PATIENCE)
        .await
        .expect("all is done with");
    // The other services hear of it by themselves.
    knows_agents(installation, PATIENCE).await;
}

/// Waits for the first answer to a message: its type and its payload.
pub(crate) async fn answer_to(client: &Client, message: &Message) -> (String, Value) {
    let what = format!("an answer to {}", message.id());
    wait_for(what, PATIENCE, async || {
        let answers = answers_to(client, message).await;
        answers
            .into_iter()
            .next()
            .ok_or_else(|| "there is none".to_owned())
    })
    .await
}

/// The types and payloads of all answers to a message so far.
pub(crate) async fn answers_to(client: &Client, message: &Message) -> Vec<(String, Value)> {
    let filter = format!("concord.v1.msg.*.*.{}.*", message.from);
    let mut answers = message_bodies(client, &filter).await.unwrap();
    // What is sent with a correlation id of its own is answered with that one.
    let names = |body: &Value, field: &str| body[field].as_str() == Some(message.id());
    answers.retain(|body| names(body, "correlation_id") || names(body, "reply_to"));
    answers
        .into_iter()
        .map(|body| {
            let kind = body["message_type"].as_str().unwrap().to_owned();
            (kind, body["payload"].clone())
        })
        .collect()
}

/// Publishes a message that is answered by an error with this code: the error's payload.
pub(crate) async fn fails(client: &Client, message: &Message, code: &str) -> Value {
    message.publish(client).await;
    let (kind, error) = answer_to(client, message).await;
    assert_eq!(
        (kind.as_str(), error["error_code"].as_str()),
        ("error", Some(code)),
        "{error}"
    );
    error
}

/// The same, where the error must also name this place in the message.
pub(crate) async fn fails_at(
    client: &Client,
    message: &Message,
    code: &str,
    pointer: &str,
) -> Value {
    let error = fails(client, message, code).await;
    assert_eq!(error["details"]["pointer"], pointer, "{error}");
    error
}

/// The ids of the requests that the coordinator knows: it has opened them, or they have failed at once. One fails so whose time was over
/// before it was stored, as on a slow machine.
pub(crate) async fn known(client: &Client) -> Result<BTreeSet<String>, String> {
    let text = |id: &Value| id.as_str().unwrap_or_default().to_owned();
    let opened = event_data(client, "request.*.opened").await?;
    let failed = event_data(client, "request.*.failed").await?;
    let opened = opened.iter().map(|one| text(&one["request_id"]));
    let failed = failed.iter().map(|one| text(&one["request"]["request_id"]));
    Ok(opened.chain(failed).collect())
}

/// Waits until `count` requests have had this event: the contents of these events.
pub(crate) async fn requests_with(
    installation: &TestInstallation,
    event: &str,
    count: usize,
) -> Vec<Value> {
    let what = format!("{count} requests to be {event}");
    wait_for(what, PATIENCE, async || {
        let events = event_data(installation.client(), &format!("request.*.{event}")).await?;
        if events.len() >= count {
            Ok(events)
        } else {
            Err(format!("{} are", events.len()))
        }
    })
    .await
}

/// The status of an agent as the coordinator tells it; none when the agent is not on the register.
async fn status(installation: &TestInstallation, agent: &str) -> Option<String> {
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

/// Waits until an agent has this status; none is for an agent that is not on the register.
pub(crate) async fn wait_for_status(
    installation: &TestInstallation,
    agent: &str,
    expected: Option<&str>,
) {
    wait_for(
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
    )
    .await;
}

/// Names that no other test has.
pub(crate) fn names<const N: usize>(names: [&str; N]) -> [String; N] {
    names.map(unique)
}

/// The HTTP answers of all replicas of a service to this path.
pub(crate) async fn http_answers(
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
    let mut answers = Vec::new();
    for one in found.iter().filter(|one| one.name == name) {
        let address = one.http().expect("it answers HTTP");
        answers.push(http_get(address, path).await.unwrap());
    }
    answers
}
