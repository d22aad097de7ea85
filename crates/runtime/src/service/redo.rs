//! Working once more on an event that was given up. The event stays where it is; what its consumer does with it is done again.

use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_wire::{ErrorCode, Fault, Timestamp};
use serde::Deserialize;
use serde_json::json;

use crate::broker::raw_message::{self, RawMessage};
use crate::broker::trace_of;
use crate::codec::dialect;
use crate::delivery::{Ack, Cost, Delivery, ErrorChain};
use crate::service::ServiceRunner;
use crate::service::api::{self, Verb, answer};
use crate::service::operator_api::unprepared;

/// The event, and the consumer that gave it up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Redo {
    consumer: String,
    sequence: u64,
}

/// Answers `redo` when the event was worked on, with the fault where that failed again.
pub(crate) fn verb(runner: &ServiceRunner) -> Verb {
    api::verb(runner.clone(), |runner, call| async move {
        redo(&runner, &call.body).await
    })
}

async fn redo(runner: &ServiceRunner, request: &[u8]) -> Result<Bytes, Fault> {
    let advice = "Give `consumer` and `sequence` as the dead letter names them.";
    let Redo { consumer, sequence } = serde_json::from_slice(request)
        .map_err(|error| Fault::invalid("", format!("It is no such request: {error}."), advice))?;
    let taker = runner.takers.of(&consumer).ok_or_else(|| {
        let service = runner.service;
        let what = format!("The {service} has no consumer {consumer:?}.");
        Fault::invalid("/consumer", what, advice)
    })?;
    let stream = runner.broker.layout.stream_name(StreamKind::Events);
    let found = raw_message::at(&runner.broker, &stream, sequence).await;
    let found = found.map_err(|error| failed(&ErrorChain(&error)))?;
    let found = found.ok_or_else(|| {
        let what = format!("There is no event {sequence} any more.");
        Fault::invalid("/sequence", what, advice)
    })?;
    let delivery = delivery(stream, &consumer, found)
        .ok_or_else(|| failed(&"what is stored there is no event"))?;
    match taker.again(delivery).await {
        Ok(Ack::Acknowledge) => answer(&json!({ "done": true })),
        Ok(Ack::Later(_)) => Err(failed(&"it is not its time yet")),
        Err(error) => Err(unprepared(error)),
    }
}

fn failed(why: &dyn std::fmt::Display) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!("It could not be done: {why}."),
        "Mend that, and ask again.",
    )
}

fn delivery(stream: String, consumer: &str, found: RawMessage) -> Option<Delivery> {
    let headers = dialect::headers_of(&found.headers().ok()?);
    Some(Delivery {
        payload: found.body().ok()?.into(),
        subject: found.subject,
        trace: trace_of(headers.as_ref()),
        headers,
        stream,
        sequence: found.sequence,
        deliveries: 1,
        stored_at: Timestamp::parse(&found.time).ok()?,
        consumer: consumer.into(),
        over_limit: None,
        cost: Cost::default(),
    })
}
