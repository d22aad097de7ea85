//! The messages in the broker's streams, and waiting until nothing is under way.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use async_nats::jetstream::{self, Context};
use concord_events::topology::{ConsumerDefinition, ConsumerKind, Layout, StreamKind};
use concord_wire::Timestamp;
use concord_wire::header::CONTENT_ENCODING;
use concord_wire::subject::Service;
use futures::StreamExt;

use crate::{Missing, until};

/// A message as a stream holds it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The sequence of the message in its stream.
    pub sequence: u64,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// The subject of the message.
    pub subject: String,
    /// The headers of the message.
    pub headers: HeaderMap,
    /// Its body, as it was before it was compressed.
    pub payload: bytes::Bytes,
}

impl Stored {
    /// A header's value; empty when it has none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.as_str())
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.payload).unwrap_or_default()
    }
}

/// How long a whole stream may take to be read, by a broker that has just come back, too.
const READ_MAX: Duration = Duration::from_secs(60);

/// What one batch has at most; what the broker has sent and nobody has read costs the connection from 64 MiB on.
const BATCH_BYTES: usize = 16 << 20;

/// The names under the default prefix.
pub fn layout() -> Layout {
    Layout::default()
}

/// Everything that a stream holds on subjects that match `filter`, in order.
pub async fn stored(
    client: &async_nats::Client,
    kind: StreamKind,
    filter: &str,
) -> Result<Vec<Stored>, String> {
    stored_from(client, kind, filter, 1).await
}

/// The same from this position on.
pub async fn stored_from(
    client: &async_nats::Client,
    kind: StreamKind,
    filter: &str,
    first: u64,
) -> Result<Vec<Stored>, String> {
    let (jetstream, stream) = (jetstream::new(client.clone()), layout().stream_name(kind));
    let read = tokio::time::timeout(READ_MAX, read(&jetstream, &stream, filter, first)).await;
    read.map_err(|_| format!("{stream} could not be read within {READ_MAX:?}"))?
        .map_err(|error| error.to_string())
}

async fn read(
    jetstream: &Context,
    stream: &str,
    filter: &str,
    first: u64,
) -> Result<Vec<Stored>, async_nats::Error> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: first,
        },
        ack_policy: AckPolicy::None,
        filter_subject: filter.to_owned(),
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        ..pull::Config::default()
    };
    let mut last = last_of(jetstream, stream, filter).await?;
    let mut consumer = jetstream.create_consumer_on_stream(config, stream).await?;
    let mut found: Vec<Stored> = Vec::new();
    let mut waiting = consumer.cached_info().num_pending;
    loop {
        let read = found
            .last()
            .map_or(first.saturating_sub(1), |stored| stored.sequence);
        if waiting == 0 && read < last {
            // The copy that is read lacks it still, or it has been removed meanwhile.
            last = last_of(jetstream, stream, filter).await?;
            waiting = consumer.info().await?.num_pending;
            continue;
        }
        if waiting == 0 {
            break;
        }
        let before = found.len();
        let fetched = consumer.fetch().max_messages(500).max_bytes(BATCH_BYTES);
        let mut batch = fetched.messages().await?;
        while let Some(message) = batch.next().await {
            let message = match message {
                // There is no room for the next one: it comes with the next batch.
                Err(_) if found.len() > before => break,
                message => message?,
            };
            let info = message.info()?;
            waiting = info.pending;
            let headers = message.headers.clone().unwrap_or_default();
            let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_str());
            let plain = concord_encoding::plain(&message.payload, encoding)
                .ok()
                .map(|body| body.into_owned());
            found.push(Stored {
                sequence: info.stream_sequence,
                at: millis(info.published.unix_timestamp_nanos()),
                subject: message.subject.to_string(),
                headers,
                payload: plain.map_or_else(|| message.payload.clone(), bytes::Bytes::from),
            });
        }
        if found.len() == before {
            // What waited may have been removed meanwhile, as when cases are archived.
            waiting = consumer.info().await?.num_pending;
        }
    }
    let name = &consumer.cached_info().name;
    jetstream.delete_consumer_from_stream(name, stream).await?;
    Ok(found)
}

/// The sequence of the last message on subjects that match `filter`, as the stream's leader knows it; 0 where there is none.
pub(crate) async fn last_of(
    jetstream: &Context,
    stream: &str,
    filter: &str,
) -> Result<u64, async_nats::Error> {
    let stream = jetstream.get_stream_no_info(stream).await?;
    match stream.get_last_raw_message_by_subject(filter).await {
        Ok(message) => Ok(message.sequence),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn millis(nanoseconds: i128) -> Timestamp {
    Timestamp::from_unix_millis(i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX))
}

/// Waits until no service has anything to do: nothing waits in a consumer, nothing is under way, and nothing new was
/// stored while that was looked at.
pub async fn settled(client: &async_nats::Client, within: Duration) -> Result<(), Missing> {
    settled_but(client, &[], within).await
}

/// The same, but for what waits in these consumers: nobody reads from them.
pub async fn settled_but(
    client: &async_nats::Client,
    unread: &[String],
    within: Duration,
) -> Result<(), Missing> {
    let jetstream = jetstream::new(client.clone());
    let mut before = None;
    until("nothing to be under way", within, async || {
        let look = Look::take(&jetstream, unread)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(busy) = &look.busy {
            before = None;
            return Err(busy.clone());
        }
        // Two looks at the same streams: what followed from the last message seen has been stored by the second.
        let same = before.as_ref() == Some(&look.last);
        before = Some(look.last);
        if same {
            Ok(())
        } else {
            Err("something was stored a moment ago".to_owned())
        }
    })
    .await
}

/// The names of the consumers of services that the broker has not.
pub async fn missing_consumers(client: &async_nats::Client) -> Result<Vec<String>, String> {
    let jetstream = jetstream::new(client.clone());
    let mut missing = Vec::new();
    for ConsumerDefinition { stream, name, .. } in read_by_services(&layout()) {
        let stream = jetstream.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        match stream.consumer_info(&name).await {
            Ok(_) => {}
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => missing.push(name),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(missing)
}

fn read_by_services(layout: &Layout) -> Vec<ConsumerDefinition> {
    let of_adapter = [ConsumerKind::Inbox, ConsumerKind::UrgentInbox]
        .map(|kind| layout.consumers_of(kind(Service::AgentAdapter)));
    let mut consumers = layout.consumers();
    consumers.extend(of_adapter.into_iter().flatten());
    consumers
}

struct Look {
    busy: Option<String>,
    last: Vec<u64>,
}

impl Look {
    async fn take(jetstream: &Context, unread: &[String]) -> Result<Self, async_nats::Error> {
        let layout = layout();
        let mut last = Vec::new();
        for kind in [
            StreamKind::Messages,
            StreamKind::Urgent,
            StreamKind::Events,
            StreamKind::Dead,
        ] {
            let mut stream = jetstream.get_stream(layout.stream_name(kind)).await?;
            last.push(stream.info().await?.state.last_sequence);
        }
        let mut busy = None;
        // The escalation timer may hold an event back for a while before it arms its deadline; until that is due nothing
        // follows from it.
        let consumers = read_by_services(&layout)
            .into_iter()
            .filter(|one| one.kind != ConsumerKind::Deadlines && !unread.contains(&one.name));
        for ConsumerDefinition {
            stream,
            name,
            service,
            ..
        } in consumers
        {
            let stream = jetstream.get_stream_no_info(stream).await?;
            let info = match stream.consumer_info(&name).await {
                Ok(info) => info,
                // An installation may do without the adapter.
                Err(error)
                    if service == Service::AgentAdapter
                        && error.kind() == ConsumerInfoErrorKind::NotFound =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (waiting, under_way) = (info.num_pending, info.num_ack_pending);
            if waiting > 0 || under_way > 0 {
                busy = Some(format!("{name}: {waiting} wait, {under_way} are under way"));
                break;
            }
        }
        Ok(Self { busy, last })
    }
}
