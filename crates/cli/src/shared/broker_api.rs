//! Requests of JetStream's API for which the client library has no function.

use std::time::Duration;

use concord_runtime::Broker;
use concord_wire::Timestamp;
use serde_json::{Value, json};

use crate::shared::failure::Failure;

/// How long the broker may take to answer. To begin a copy of a large stream takes it a while.
const ANSWER_MAX: Duration = Duration::from_secs(120);

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
    let request = async_nats::Request::new()
        .payload(body.into())
        .timeout(Some(ANSWER_MAX));
    let answer = broker.client.send_request(subject.clone(), request).await;
    let answer = answer.map_err(|error| {
        Failure::unavailable(format!(
            "the broker does not answer on {subject}: {error}; this needs the rights of an operator"
        ))
    })?;
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
