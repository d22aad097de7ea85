//! Publishing messages of services: each is stored once under its id, in the dialect of its recipient.

use std::borrow::Cow;

use async_nats::HeaderMap;
use bytes::Bytes;
use concord_wire::subject::Subject;
use concord_wire::{Dialect, Encoding, Envelope, header};
use futures::future::try_join_all;

use crate::broker::publish::Stored;
use crate::broker::raw_message::{self, RawMessage};
use crate::broker::{Broker, Operation, headers};
use crate::codec::dialect;
use crate::event_store::nats::NatsPorts;
use crate::event_store::{Error, Publisher};
use crate::telemetry::trace::Trace;

/// Room for headers beside a body, in bytes.
const HEADER_BYTES: usize = 4_096;

/// Whether the broker takes a body of this size, with its headers.
pub(crate) fn check_size(broker: &Broker, bytes: usize) -> Result<(), Error> {
    if bytes + HEADER_BYTES > broker.client.max_payload() {
        return Err(Error::TooLarge { bytes });
    }
    Ok(())
}

impl Broker {
    /// Stores one message under its `message_id`, in the dialect of its recipient; done when it is stored.
    pub async fn publish(&self, envelope: &Envelope, trace: Option<&Trace>) -> Result<(), Error> {
        self.publish_in(dialect::of_recipient(self, envelope), envelope, trace)
            .await
    }

    /// Stores one message under its `message_id` in a dialect, which its header names; done when it is stored.
    pub async fn publish_in(
        &self,
        dialect: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<(), Error> {
        publish_all(self, &[(dialect, envelope)], trace).await
    }

    /// Stores a message as it is, once under the id in its headers, if they have one; done when it is stored. Another
    /// message that has taken the id does not keep it from being stored.
    pub async fn publish_as_it_is(
        &self,
        subject: String,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(), Error> {
        let written = WrittenMessage {
            subject,
            headers,
            body,
        };
        written.store_once(self).await
    }

    /// Stores one message under its `message_id`, unless its sender has published another for the same recipient and case
    /// under that id: then that one stands, and this is false. For answers that would not be the same a second time.
    pub async fn publish_first(
        &self,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<bool, Error> {
        let dialect = dialect::of_recipient(self, envelope);
        let written = WrittenMessage::new(self, dialect, envelope, trace)?;
        let stored = written.store(self).await?;
        if !stored.duplicate {
            return Ok(true);
        }
        let found = raw_message::at(self, &stored.stream, stored.sequence).await;
        let found = found.map_err(|error| Operation::ReadMessage.failed(error))?;
        let subject = found.and_then(|found| self.subjects().parse(&found.subject).ok());
        let was_first = match subject {
            Some(Subject::Message { from, to, case, .. }) => {
                from == envelope.from_agent && to == envelope.to_agent && case == envelope.case_id
            }
            _ => false,
        };
        if was_first {
            return Ok(false);
        }
        ensure_stored(self, &stored, written).await?;
        Ok(true)
    }
}

impl Publisher for NatsPorts {
    async fn publish(&self, messages: &[Envelope], trace: Option<&Trace>) -> Result<(), Error> {
        let dialect = |envelope| dialect::of_recipient(&self.broker, envelope);
        let messages: Vec<_> = messages
            .iter()
            .map(|envelope| (dialect(envelope), envelope))
            .collect();
        publish_all(&self.broker, &messages, trace).await
    }

    async fn publish_in(
        &self,
        dialect: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<(), Error> {
        self.broker.publish_in(dialect, envelope, trace).await
    }

    async fn publish_first(
        &self,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<bool, Error> {
        self.broker.publish_first(envelope, trace).await
    }
}

/// Stores messages, each under its `message_id`. All are sent before the first answer is awaited.
async fn publish_all(
    broker: &Broker,
    messages: &[(Dialect, &Envelope)],
    trace: Option<&Trace>,
) -> Result<(), Error> {
    let written = messages
        .iter()
        .map(|&(dialect, envelope)| WrittenMessage::new(broker, dialect, envelope, trace));
    let written = written.collect::<Result<Vec<_>, Error>>()?;
    let stored = written
        .into_iter()
        .map(|written| written.store_once(broker));
    try_join_all(stored).await.map(|_| ())
}

/// A message as it goes to the broker.
struct WrittenMessage {
    subject: String,
    headers: HeaderMap,
    body: Bytes,
}

impl WrittenMessage {
    fn new(
        broker: &Broker,
        dialect: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<Self, Error> {
        let (subject, body) = dialect::write(envelope, dialect)?;
        let mut headers = headers(envelope.message_id.as_str(), trace);
        let body = if broker.compresses(&envelope.to_agent, body.len()) {
            headers.insert(header::CONTENT_ENCODING, Encoding::Gzip.as_str());
            concord_encoding::gzip(&body).map_err(Error::Uncompressible)?
        } else {
            body
        };
        check_size(broker, body.len())?;
        if dialect != Dialect::Concord {
            headers.insert(header::DIALECT, dialect.as_str());
        }
        Ok(Self {
            subject: broker.subjects().build(&subject),
            headers,
            body: Bytes::from(body),
        })
    }

    async fn store(&self, broker: &Broker) -> Result<Stored, Error> {
        let subject = self.subject.clone();
        let (headers, body) = (self.headers.clone(), self.body.clone());
        let stored = broker.store(subject, headers, body).await;
        Ok(stored.map_err(|error| Operation::StoreMessage.failed(error))?)
    }

    /// Stores it, unless it stands there already.
    async fn store_once(self, broker: &Broker) -> Result<(), Error> {
        let stored = self.store(broker).await?;
        if stored.duplicate {
            ensure_stored(broker, &stored, self).await?;
        }
        Ok(())
    }

    /// Whether a stored message is this one. The same in another dialect is the same: the agent's card may have become known
    /// in between.
    fn is_stored_as(&self, broker: &Broker, stored: &RawMessage) -> bool {
        let is_same = || {
            let found = stored.body().ok()?;
            let found_headers = dialect::headers_of(&stored.headers().ok()?);
            let found = plain_or_raw(&found, found_headers.as_ref());
            let written = plain_or_raw(&self.body, Some(&self.headers));
            let is_same = match broker.subjects().parse(&self.subject) {
                Ok(subject) => dialect::is_same(&found, &written, &subject),
                // A deadline or a dead letter, which know no dialects.
                Err(_) => found == written,
            };
            Some(is_same)
        };
        stored.subject == self.subject && is_same() == Some(true)
    }
}

/// A body as it was written. What cannot be expanded counts as it is.
fn plain_or_raw<'a>(body: &'a [u8], headers: Option<&HeaderMap>) -> Cow<'a, [u8]> {
    dialect::plain(body, headers).unwrap_or(Cow::Borrowed(body))
}

/// Makes sure of a message that the broker says it has already, as `acknowledged`.
///
/// Ids of services' messages can be foreseen, and the broker knows a message by its `Nats-Msg-Id` alone. An agent that
/// publishes anything under such an id would keep the service's message from being stored. Therefore the message that
/// stands there is looked at, and where it is another's, ours is stored without that header.
async fn ensure_stored(
    broker: &Broker,
    acknowledged: &Stored,
    written: WrittenMessage,
) -> Result<(), Error> {
    debug_assert!(acknowledged.duplicate, "the message was stored just now");
    let stored = raw_message::at(broker, &acknowledged.stream, acknowledged.sequence).await;
    let stored = stored.map_err(|error| Operation::ReadMessage.failed(error))?;
    if stored.is_some_and(|stored| written.is_stored_as(broker, &stored)) {
        return Ok(());
    }
    let WrittenMessage {
        subject,
        headers,
        body,
    } = written;
    tracing::warn!(%subject, sequence = acknowledged.sequence, "Another message had taken this message's id.");
    let mut without_id = HeaderMap::new();
    for (name, values) in headers.iter() {
        if AsRef::<str>::as_ref(name) == header::MESSAGE_ID {
            continue;
        }
        for value in values {
            without_id.append(name.clone(), value.clone());
        }
    }
    let stored = broker.store(subject, without_id, body).await;
    stored.map_err(|error| Operation::StoreMessage.failed(error))?;
    Ok(())
}
