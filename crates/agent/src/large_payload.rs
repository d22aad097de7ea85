//! Payloads that are too large for a message. They are put into the object store, and the message refers to them. The coordinator puts and
//! fetches them for the agent, which needs no right on the store for it; where none answers the agent goes to the store itself.

use std::time::Duration;

use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use async_nats::{RequestError, RequestErrorKind};
use concord_encoding::parts::{AskedPart, PAYLOAD, PUT_PAYLOAD, Part, PartStored, PutPart};
use concord_encoding::{PAYLOAD_BYTES_MAX, PayloadReference};
use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::payload::ErrorReport;
use concord_wire::subject::Service;
use concord_wire::{Envelope, ErrorCode, Fault, MessageType};
use tokio::io::AsyncReadExt;

use crate::{Agent, Error, Message};

/// Room for the headers of a message beside its body.
const HEADER_BYTES: usize = 4_096;
/// How long fetching an object may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

impl Agent {
    /// Whether a body of so many bytes is too large for a message.
    pub(crate) fn is_too_large(&self, bytes: usize) -> bool {
        bytes + HEADER_BYTES > ENVELOPE_BYTES_MAX.min(self.inner.client.max_payload())
    }

    /// Puts the payload of a message into the object store. Returns the message with a reference in its place.
    pub(crate) async fn with_stored_payload(&self, message: &Message) -> Result<Message, Error> {
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
        concord_encoding::check_values(&message.payload)?;
        let bucket = self.inner.subjects.payload_bucket();
        let reference = PayloadReference::new(&bucket, message.message_id.as_str(), payload);
        let reference = match self.put_by_service(&reference, payload).await? {
            Some(stored) => stored,
            None => self.put(reference, payload).await?,
        };
        Ok(Envelope {
            payload: reference.payload()?,
            ..message.clone()
        })
    }

    /// Has the coordinator put a payload, part by part. `None` where no coordinator answers that can.
    async fn put_by_service(
        &self,
        reference: &PayloadReference,
        payload: &[u8],
    ) -> Result<Option<PayloadReference>, Error> {
        // Another upload than that of any attempt before: of such a one some parts may be there.
        let inbox = self.inner.client.new_inbox();
        let unique = inbox.rsplit('.').next().unwrap_or_default();
        let upload = format!("{}-{unique}", reference.object);
        let (mut part, mut after) = (0, 0);
        while let Some(put) = PutPart::of(&upload, reference, payload, part, after) {
            let stored = self.query(Service::Coordinator, PUT_PAYLOAD, &put).await;
            let stored: PartStored = match stored {
                Err(error) if part == 0 && is_unanswered(&error) => return Ok(None),
                stored => stored?,
            };
            if stored.reference.is_some() {
                return Ok(stored.reference);
            }
            (part, after) = (part + 1, stored.after);
        }
        Ok(None)
    }

    /// Puts a payload into the object store.
    async fn put(
        &self,
        reference: PayloadReference,
        payload: &[u8],
    ) -> Result<PayloadReference, Error> {
        let store_error = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::broker("take a payload")(error)
        };
        let store = self
            .inner
            .jetstream
            .get_object_store(&reference.bucket)
            .await
            .map_err(|error| store_error(error.into()))?;
        // The object is there already if the same answer is sent a second time.
        let is_stored = store
            .info(&reference.object)
            .await
            .is_ok_and(|info| info.digest.as_ref() == Some(&reference.digest));
        if !is_stored {
            let metadata = ObjectMetadata {
                name: reference.object.clone(),
                ..ObjectMetadata::default()
            };
            store
                .put(metadata, &mut &*payload)
                .await
                .map_err(|error| store_error(error.into()))?;
        }
        Ok(reference)
    }

    /// Fetches the payload of a message that refers to the object store; any other message is returned as it is. `None` if the
    /// payload cannot be fetched; the sender is told if it waits for an answer.
    pub(crate) async fn with_fetched_payload(&self, message: Message) -> Option<Message> {
        let fault = match PayloadReference::of(&message.payload) {
            Ok(None) => return Some(message),
            Ok(Some(reference)) => match self.fetch(&reference).await {
                Ok(payload) => return Some(Envelope { payload, ..message }),
                Err(fault) => fault,
            },
            Err(fault) => fault,
        };
        tracing::warn!(%fault, from = %message.from_agent, "A payload cannot be had.");
        let kind = &message.message_type;
        let is_answer = matches!(kind, MessageType::Response | MessageType::Error);
        if is_answer || self.inner.pending.is_awaited(&message) {
            // The handler of the answer is given the error in its place.
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
        reference.check(&self.inner.subjects.payload_bucket(), PAYLOAD_BYTES_MAX)?;
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, async {
            match self.get_by_service(reference).await? {
                Some(bytes) => Ok(bytes),
                None => self.download(reference).await,
            }
        });
        let bytes = fetched.await.unwrap_or_else(|_| Err(reference.missing()))?;
        reference.verified(bytes)
    }

    /// Has the coordinator give a payload, part by part. `None` where no coordinator answers that can.
    async fn get_by_service(&self, reference: &PayloadReference) -> Result<Option<Vec<u8>>, Fault> {
        let (mut bytes, mut after) = (Vec::new(), 0);
        while (bytes.len() as u64) < reference.size {
            let asked = AskedPart {
                reference: reference.clone(),
                after,
            };
            let part: Part = match self.query(Service::Coordinator, PAYLOAD, &asked).await {
                Ok(part) => part,
                Err(error) if after == 0 && is_unanswered(&error) => return Ok(None),
                Err(error) => return Err(fault_of(error)),
            };
            after = part.after;
            bytes.extend(part.bytes()?);
        }
        Ok(Some(bytes))
    }

    async fn download(&self, reference: &PayloadReference) -> Result<Vec<u8>, Fault> {
        let store = self
            .inner
            .jetstream
            .get_object_store(&reference.bucket)
            .await
            .map_err(|error| fetch_error(&error))?;
        let object = store
            .get(&reference.object)
            .await
            .map_err(|error| match error.kind() {
                GetErrorKind::NotFound | GetErrorKind::InvalidName | GetErrorKind::BucketLink => {
                    reference.missing()
                }
                _ => fetch_error(&error),
            })?;
        // One byte more than the reference says is enough to see that the object is larger.
        let most = reference.size.saturating_add(1);
        let mut bytes = Vec::new();
        object
            .take(most)
            .read_to_end(&mut bytes)
            .await
            .map_err(|error| fetch_error(&error))?;
        if bytes.len() as u64 > reference.size {
            Err(reference.larger())
        } else {
            Ok(bytes)
        }
    }
}

/// Whether nobody has heard a request to a service.
fn is_unanswered(error: &Error) -> bool {
    let Error::Broker { source, .. } = error else {
        return false;
    };
    let error = source.downcast_ref::<RequestError>();
    error.is_some_and(|error| error.kind() == RequestErrorKind::NoResponders)
}

/// Why a service has not given a payload.
fn fault_of(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => fault,
        Error::Refused(report) => Fault::new(
            report.error_code,
            "/payload",
            report.error_message.clone(),
            report.recovery_suggestions.join(" "),
        ),
        other => fetch_error(&other),
    }
}

fn fetch_error(error: &dyn std::error::Error) -> Fault {
    let what = format!("The payload could not be fetched: {error}.");
    Fault::new(
        ErrorCode::InternalError,
        "/payload",
        what,
        "Ask again later.",
    )
}
