//! Payloads that are too large for a message: they are put into the object store, and fetched from it.

use std::time::Duration;

use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use concord_encoding::{PAYLOAD_BYTES_MAX, PayloadReference};
use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::payload::ErrorReport;
use concord_wire::{Envelope, ErrorCode, Fault, MessageType};
use tokio::io::AsyncReadExt;

use crate::{Agent, Error, Message};

/// Room for the headers of a message beside its body.
const HEADER_BYTES: usize = 4_096;
/// How long an object may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

impl Agent {
    /// Whether a body of so many bytes is no message any more.
    pub(crate) fn is_too_large(&self, bytes: usize) -> bool {
        bytes + HEADER_BYTES > ENVELOPE_BYTES_MAX.min(self.inner.client.max_payload())
    }

    /// The same message with its payload in the object store.
    pub(crate) async fn referring(&self, message: &Message) -> Result<Message, Error> {
        let payload = message.payload.get().as_bytes();
        if payload.len() as u64 > PAYLOAD_BYTES_MAX {
            return Err(Error::Fault(Fault::new(
                ErrorCode::CapacityExceeded,
                "/payload",
                format!(
                    "The payload has {} bytes; at most {PAYLOAD_BYTES_MAX} can be sent.",
                    payload.len()
                ),
                "Send less, or say where it can be had.",
            )));
        }
        let bucket = self.inner.layout.payload_bucket();
        let reference = PayloadReference::new(&bucket, message.message_id.as_str(), payload);
        let untaken = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::broker("take a payload")(error)
        };
        let store = self
            .inner
            .jetstream
            .get_object_store(&bucket)
            .await
            .map_err(|error| untaken(error.into()))?;
        // The same answer given twice is one object; it is there already.
        let there = store
            .info(&reference.object)
            .await
            .is_ok_and(|info| info.digest.as_ref() == Some(&reference.digest));
        if !there {
            let metadata = ObjectMetadata {
                name: reference.object.clone(),
                ..ObjectMetadata::default()
            };
            store
                .put(metadata, &mut &*payload)
                .await
                .map_err(|error| untaken(error.into()))?;
        }
        Ok(Envelope {
            payload: reference.payload()?,
            ..message.clone()
        })
    }

    /// A message with its payload, wherever that is; none where it cannot be had, which its sender is told.
    pub(crate) async fn whole(&self, message: Message) -> Option<Message> {
        let fault = match PayloadReference::of(&message.payload) {
            Ok(None) => return Some(message),
            Ok(Some(reference)) => match self.fetch(&reference).await {
                Ok(payload) => return Some(Envelope { payload, ..message }),
                Err(fault) => fault,
            },
            Err(fault) => fault,
        };
        tracing::warn!(%fault, from = %message.from_agent, "A payload cannot be had.");
        if matches!(
            message.message_type,
            MessageType::Response | MessageType::Error
        ) {
            // Whoever waits for it is told instead.
            let report = serde_json::value::to_raw_value(&ErrorReport::from(&fault)).ok()?;
            return Some(Envelope {
                message_type: MessageType::Error,
                payload: report,
                ..message
            });
        }
        if message.requires_response
            && let Err(error) = self.refuse(&message, &fault).await
        {
            tracing::warn!(%error, "The sender was not told.");
        }
        None
    }

    async fn fetch(
        &self,
        reference: &PayloadReference,
    ) -> Result<Box<serde_json::value::RawValue>, Fault> {
        reference.check(&self.inner.layout.payload_bucket(), PAYLOAD_BYTES_MAX)?;
        let fetched = tokio::time::timeout(PATIENCE, self.bytes_of(reference)).await;
        let bytes = fetched.unwrap_or_else(|_| Err(reference.missing()))?;
        reference.verified(bytes)
    }

    async fn bytes_of(&self, reference: &PayloadReference) -> Result<Vec<u8>, Fault> {
        let unread = |error: &dyn std::error::Error| {
            let what = format!("The payload could not be fetched: {error}.");
            Fault::new(
                ErrorCode::InternalError,
                "/payload",
                what,
                "Ask again later.",
            )
        };
        let store = self
            .inner
            .jetstream
            .get_object_store(&reference.bucket)
            .await
            .map_err(|error| unread(&error))?;
        let object = store
            .get(&reference.object)
            .await
            .map_err(|error| match error.kind() {
                GetErrorKind::NotFound | GetErrorKind::InvalidName | GetErrorKind::BucketLink => {
                    reference.missing()
                }
                _ => unread(&error),
            })?;
        // At most as many bytes as the reference says, whatever the object says of itself.
        let (mut bytes, most) = (Vec::new(), reference.size.saturating_add(1));
        object
            .take(most)
            .read_to_end(&mut bytes)
            .await
            .map_err(|error| unread(&error))?;
        if bytes.len() as u64 > reference.size {
            Err(reference.larger())
        } else {
            Ok(bytes)
        }
    }
}
