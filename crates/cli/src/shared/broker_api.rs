//! Requests of JetStream's API for which the client library has no function.

use std::time::{Duration, Instant};

use async_nats::Message;
use bytes::Bytes;
use concord_runtime::Broker;
use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::shared::failure::Failure;

/// How long the broker may take to answer. To begin a copy of a large stream takes it a while, and so does to read the whole at the end.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// How long an answer is waited for that a lost connection has probably taken with it.
const LOST_MAX: Duration = Duration::from_secs(5);
/// How often is looked whether there is a connection.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The code of an error: there is no such stream.
const NO_STREAM: u64 = 10_059;

/// Has a consumer hand out nothing until then, or everything again: how long that is by the broker's clock, which counts. `None` where there
/// is no such stream.
pub(crate) async fn pause(
    broker: &Broker,
    (stream, consumer): (&str, &str),
    until: Option<Timestamp>,
) -> Result<Option<Duration>, Failure> {
    let body = match until {
        Some(until) => json!({ "pause_until": until }),
        None => json!({}),
    };
    let subject = format!("$JS.API.CONSUMER.PAUSE.{stream}.{consumer}");
    let answer = ask(broker, subject, &body).await?;
    // In nanoseconds, and not there where that time is over.
    let left = |answer: Value| answer.get("pause_remaining").and_then(Value::as_u64);
    Ok(answer.map(|answer| Duration::from_nanos(left(answer).unwrap_or(0))))
}

/// Waits until the connection is lost on which something was asked when the process had connected so often.
pub(crate) async fn lost(broker: &Broker, connects: u64) -> Failure {
    let mut since = None;
    loop {
        // What was asked on an earlier connection is seldom answered on the next, though it may be.
        if broker.is_connected() && broker.connects() == connects {
            since = None;
        } else if since.get_or_insert_with(Instant::now).elapsed() >= LOST_MAX {
            return Failure::unavailable("the connection to the broker is lost");
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Sends a request for which the broker may take a while.
pub(crate) async fn request(
    broker: &Broker,
    subject: String,
    payload: Bytes,
) -> Result<Message, Failure> {
    let request = async_nats::Request::new()
        .payload(payload)
        .timeout(Some(ANSWER_MAX));
    let connects = broker.connects();
    let answer = tokio::select! {
        answer = broker.client.send_request(subject.clone(), request) => answer,
        lost = lost(broker, connects) => return Err(lost),
    };
    answer.map_err(|error| {
        let unanswered =
            Failure::unavailable(format!("the broker does not answer on {subject}: {error}"));
        // It says so beside the answers, and of what else is silent nobody knows why.
        match broker.is_denied(&subject) {
            true => unanswered.and("this needs the rights of an operator"),
            false => unanswered,
        }
    })
}

/// Asks JetStream, where the body is null with an empty request; `None` where there is no such stream.
pub(crate) async fn ask(
    broker: &Broker,
    subject: String,
    body: &Value,
) -> Result<Option<Value>, Failure> {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let answer = request(broker, subject.clone(), body.into()).await?;
    let answer: Value = serde_json::from_slice(&answer.payload)
        .map_err(|error| Failure::failed(format!("the broker sent nonsense: {error}")))?;
    let Some(error) = answer.get("error") else {
        return Ok(Some(answer));
    };
    if error.get("err_code").and_then(Value::as_u64) == Some(NO_STREAM) {
        return Ok(None);
    }
    let described = error.get("description").and_then(Value::as_str);
    Err(Failure::failed(format!(
        "the broker refuses {subject}: {}",
        described.unwrap_or("it does not say why")
    )))
}
