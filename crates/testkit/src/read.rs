//! What the broker's streams hold, as tests compare it: bodies as JSON, contents of events, dead letters.

use async_nats::Client;
use async_nats::jetstream;
use bytes::Bytes;
use concord_events::dead_letter::header;
use concord_events::topology::StreamKind;
use serde_json::Value;

use crate::stored::{Stored, layout, stored};

/// The messages of the normal lane whose subjects match `filter`, in order.
///
/// # Errors
/// When the stream cannot be read.
pub async fn messages(client: &Client, filter: &str) -> Result<Vec<Stored>, String> {
    stored(client, StreamKind::Messages, filter).await
}

/// The bodies of [`messages`], as JSON.
///
/// # Errors
/// When the stream cannot be read.
pub async fn message_bodies(client: &Client, filter: &str) -> Result<Vec<Value>, String> {
    let messages = messages(client, filter).await?;
    Ok(messages.iter().map(Stored::json).collect())
}

/// The stored events whose subjects match `concord.v1.event.<filter>`, in order: `<aggregate>.<id>.<event>`.
///
/// # Errors
/// When the stream cannot be read.
pub async fn events(client: &Client, filter: &str) -> Result<Vec<Stored>, String> {
    let filter = format!("concord.v1.event.{filter}");
    stored(client, StreamKind::Events, &filter).await
}

/// The field `data` of the same [`events`].
///
/// # Errors
/// When the stream cannot be read.
pub async fn event_data(client: &Client, filter: &str) -> Result<Vec<Value>, String> {
    let events = events(client, filter).await?;
    let data = events.iter().map(|event| event.json()["data"].clone());
    Ok(data.collect())
}

/// All dead letters, in order.
///
/// # Errors
/// When the stream cannot be read.
pub async fn dead_letters(client: &Client) -> Result<Vec<Stored>, String> {
    stored(client, StreamKind::Dead, ">").await
}

/// The original of a dead letter as it was sent: from the letter, or from where the letter says that it is.
///
/// # Errors
/// When it is in neither.
pub async fn original(client: &Client, letter: &Stored) -> Result<Bytes, String> {
    if letter.header(header::BYTES).is_empty() {
        return Ok(letter.payload.clone());
    }
    let sequence = letter.header(header::SEQUENCE).parse();
    let stream = jetstream::new(client.clone())
        .get_stream_no_info(letter.header(header::STREAM))
        .await
        .map_err(|error| error.to_string())?;
    let message = stream
        .get_raw_message(sequence.map_err(|error| format!("no sequence: {error}"))?)
        .await
        .map_err(|error| error.to_string())?;
    Ok(message.payload)
}

/// Whether a durable consumer has delivered everything, and everything that it delivered is acknowledged. Otherwise the
/// error says how many messages are left.
///
/// # Errors
/// When messages are left, or the broker does not answer.
pub async fn consumer_is_done(
    client: &Client,
    kind: StreamKind,
    consumer: &str,
) -> Result<(), String> {
    let stream = jetstream::new(client.clone())
        .get_stream_no_info(layout().stream_name(kind))
        .await
        .map_err(|error| error.to_string())?;
    let info = stream
        .consumer_info(consumer)
        .await
        .map_err(|error| error.to_string())?;
    match (info.num_pending, info.num_ack_pending) {
        (0, 0) => Ok(()),
        (waiting, under_way) => Err(format!("{waiting} wait, {under_way} are under way")),
    }
}
