//! What is shared: the board, the commitments and the analyses of a case, and memory, between agents that have nothing but a NATS client, or a library. Real broker and services.

use std::time::Duration;

use async_nats::Client;
use concord_testkit::{
    Message, TestInstallation, concord, dead_letters, message_bodies, unique, wait_for,
};
use serde_json::{Value, json};

mod alert_rules;
mod analyses;
mod board;
mod commitments;
mod confirmations;
mod importance;
mod joining;
mod killed;
mod memory;
mod memory_sync;

/// Longer than anything here takes, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a case of these agents, who take their time.
pub(crate) async fn case_of(installation: &TestInstallation, participants: &[&str]) -> String {
    let case = unique("case");
    let opening = json!({
        "case_id": case, "participants": participants, "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;
    case
}

/// Publishes a message and waits for its answer: the type and the payload.
async fn said(client: &Client, message: &Message) -> (String, Value) {
    message.publish(client).await;
    answer_to(client, message).await
}

/// Waits for the answer to a message: the type and the payload.
async fn answer_to(client: &Client, message: &Message) -> (String, Value) {
    let what = format!("an answer to {}", message.id());
    let filter = format!("concord.v1.msg.*.*.{}.*", message.from);
    let body = wait_for(what, PATIENCE, async || {
        let bodies = message_bodies(client, &filter).await?;
        let mut answers = bodies.into_iter();
        let answer = answers.find(|body| body["reply_to"].as_str() == Some(message.id()));
        answer.ok_or_else(|| "there is none".to_owned())
    })
    .await;
    let kind = body["message_type"].as_str().unwrap_or_default();
    (kind.to_owned(), body["payload"].clone())
}

/// Waits until so many messages are kept that were refused, and no more are. The last may be kept only after its sender was told.
async fn all_kept(client: &Client, expected: usize) {
    wait_for("each of them to be kept", PATIENCE, async || {
        let kept = dead_letters(client).await?.len();
        (kept == expected)
            .then_some(())
            .ok_or(format!("{kept} are kept"))
    })
    .await;
}

/// Publishes a message that is granted: the result of the response.
async fn granted(client: &Client, message: &Message) -> Value {
    let (kind, payload) = said(client, message).await;
    assert_eq!(kind, "response", "{payload}");
    payload["result"].clone()
}

/// Publishes a message that is refused with this code at this place: what is said.
async fn refused(client: &Client, message: &Message, code: &str, pointer: &str) -> String {
    let (kind, payload) = said(client, message).await;
    assert_eq!(kind, "error", "{payload}");
    assert_eq!(payload["error_code"], code, "{payload}");
    assert_eq!(payload["details"]["pointer"], pointer, "{payload}");
    payload["error_message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Asks the coordinator under a name, as an agent does: the answer, or the error.
async fn asks(client: &Client, name: &str, verb: &str, request: Value) -> Result<Value, Value> {
    asks_of(client, ("coordinator", verb), name, request).await
}

/// The same for any service.
async fn asks_of(
    client: &Client,
    (service, verb): (&str, &str),
    name: &str,
    request: Value,
) -> Result<Value, Value> {
    let subject = format!("concord.v1.api.{service}.{verb}.{name}");
    let answer = client
        .request(subject, request.to_string().into())
        .await
        .expect("the service answers");
    let headers = answer.headers.unwrap_or_default();
    match headers.get("Nats-Service-Error") {
        Some(error) => Err(serde_json::from_str(error.as_str()).expect("an error as JSON")),
        None => Ok(serde_json::from_slice(&answer.payload).expect("JSON")),
    }
}

/// Waits for a notification of this event to somebody in the case: its data.
async fn told(
    client: &Client,
    (case, to): (&str, &str),
    event: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    let filter = format!("concord.v1.msg.{case}.coordinator.{to}.notification");
    wait_for(format!("{event} to {to}"), PATIENCE, async || {
        let bodies = message_bodies(client, &filter).await?;
        let payloads = bodies.into_iter().map(|body| body["payload"].clone());
        let mut told = payloads.filter(|payload| payload["event"] == event);
        told.find(|payload| is_it(&payload["data"]))
            .map(|payload| payload["data"].clone())
            .ok_or_else(|| "there is none".to_owned())
    })
    .await
}

/// Runs the command: what it prints as JSON, where it succeeds.
fn command(installation: &TestInstallation, arguments: &[&str]) -> Result<Value, String> {
    let server = installation.server_url().to_owned();
    let done = concord(&[arguments, &["--json", "--server", &server]].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() {
        return Ok(serde_json::from_slice(&done.stdout).expect("JSON"));
    }
    Err(text(&done.stdout) + &text(&done.stderr))
}
