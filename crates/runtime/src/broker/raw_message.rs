//! Single messages as the stream's leader describes them in JSON, whether or not a client could parse them.

use async_nats::jetstream::context::RequestError;
use async_nats::jetstream::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::broker::Broker;

/// A message as the broker describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct RawMessage {
    pub(crate) subject: String,
    #[serde(rename = "seq")]
    pub(crate) sequence: u64,
    /// When it was stored, as RFC 3339.
    #[serde(default)]
    pub(crate) time: String,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl RawMessage {
    /// The header block.
    pub(crate) fn headers(&self) -> Result<Vec<u8>, base64::DecodeError> {
        BASE64_STANDARD.decode(&self.hdrs)
    }

    /// The body.
    pub(crate) fn body(&self) -> Result<Vec<u8>, base64::DecodeError> {
        BASE64_STANDARD.decode(&self.data)
    }
}

/// The first message from `sequence` on whose subject matches `filter`.
pub(crate) async fn next(
    broker: &Broker,
    stream: &str,
    filter: &str,
    sequence: u64,
) -> Result<Option<RawMessage>, RequestError> {
    ask(
        broker,
        stream,
        &json!({ "seq": sequence, "next_by_subj": filter }),
    )
    .await
}

/// The message at `sequence`.
pub(crate) async fn at(
    broker: &Broker,
    stream: &str,
    sequence: u64,
) -> Result<Option<RawMessage>, RequestError> {
    ask(broker, stream, &json!({ "seq": sequence })).await
}

async fn ask(
    broker: &Broker,
    stream: &str,
    request: &Value,
) -> Result<Option<RawMessage>, RequestError> {
    #[derive(Deserialize)]
    struct Found {
        message: RawMessage,
    }
    match broker
        .jetstream
        .request(format!("STREAM.MSG.GET.{stream}"), request)
        .await?
    {
        Response::Ok(Found { message }) => Ok(Some(message)),
        // There is none, or it is gone by now.
        Response::Err { .. } => Ok(None),
    }
}
