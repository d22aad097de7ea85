//! Reading a stream from any place on, in order, for whoever digests what is stored.
//!
//! A message that no client can parse costs the connection (see [`unparsable`]). It is found by the broker's description of
//! it, and passed over: it has no digest, like a message that is gone.
//!
//! A consumer is on one copy of its stream, and that of a broker that has just come back may lack what is new. So the stream's leader is
//! asked what is the last that is to be read.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use bytes::Bytes;
use concord_archive::ArchivedMessage;
use concord_domain::assurance::evidence::{Content, MessageDigest};
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use futures::StreamExt;

use crate::broker::pull_room::bytes_max;
use crate::broker::raw_message::{self, unparsable};
use crate::broker::{Broker, Operation, Unavailable, timestamp};

/// Messages that are asked for at once.
const BATCH: usize = 500;
/// Messages that are looked at one by one for the one that costs the connection.
const SEARCHED_MAX: usize = 2 * BATCH;
/// How long a copy of a stream may take to get what it lacks, and how often it is looked at.
const BEHIND_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// How long the broker keeps the consumer of a reader that went away.
const IDLE: Duration = Duration::from_secs(30);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A message as its stream holds it.
#[derive(Debug, Clone)]
pub struct LogMessage {
    /// Its sequence in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// The time at which the broker stored it.
    pub at: Timestamp,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as it is stored.
    pub payload: Bytes,
}

impl LogMessage {
    /// The message of a stream of this kind, as it is archived.
    pub fn archived(&self, stream: StreamKind) -> ArchivedMessage {
        let headers = self.headers.iter().flat_map(|(name, values)| {
            let of_name =
                |value: &async_nats::HeaderValue| (name.to_string(), value.as_str().to_owned());
            values.iter().map(of_name)
        });
        let mut headers: Vec<(String, String)> = headers.collect();
        // Several values of one name stay in their order.
        headers.sort_by(|(one, _), (other, _)| one.cmp(other));
        ArchivedMessage {
            stream,
            sequence: self.sequence,
            at: self.at,
            subject: self.subject.clone(),
            headers,
            payload: self.payload.clone(),
        }
    }

    /// The digest of what it says, in a stream of this kind.
    pub fn digest(&self, stream: StreamKind) -> MessageDigest {
        digest(stream, &self.subject, &self.headers, &self.payload)
    }
}

/// The digest of what a stored message says.
pub fn digest(
    stream: StreamKind,
    subject: &str,
    headers: &HeaderMap,
    payload: &[u8],
) -> MessageDigest {
    let headers = headers.iter().flat_map(|(name, values)| {
        let name: &str = name.as_ref();
        values.iter().map(move |value| (name, value.as_str()))
    });
    Content { subject, payload }.digest(stream, headers)
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnd {
    /// The last sequence that was given to a message; 0 before the first.
    pub last_sequence: u64,
    /// When the first message that it holds was stored; none where it holds none.
    pub first_at: Option<Timestamp>,
    /// How long messages are kept, in milliseconds; none without limit.
    pub kept_ms: Option<u64>,
}

/// The end of a stream, at this moment.
pub async fn end(broker: &Broker, kind: StreamKind) -> Result<StreamEnd, Unavailable> {
    let info = broker.stream(kind).await?.get_info().await;
    let info = info.map_err(|error| Operation::DescribeStream.failed(error))?;
    let kept_ms = u64::try_from(info.config.max_age.as_millis()).unwrap_or(u64::MAX);
    let first = info.state.first_timestamp.unix_timestamp_nanos();
    Ok(StreamEnd {
        last_sequence: info.state.last_sequence,
        first_at: (info.state.messages > 0).then(|| timestamp(first)),
        kept_ms: Some(kept_ms).filter(|kept| *kept > 0),
    })
}

/// Where a stream holds a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its sequence in the stream.
    pub sequence: u64,
    /// The time at which the broker stored it.
    pub at: Timestamp,
}

/// The last message that a stream holds on subjects that match one of `filters`, or on all where there are none, as the stream's
/// leader knows it.
pub async fn last(
    broker: &Broker,
    kind: StreamKind,
    filters: &[String],
) -> Result<Option<Place>, Unavailable> {
    let name = broker.layout.stream_name(kind);
    // Not `>`: for that the broker looks at the last sequence alone, and finds nothing where that message was removed.
    let all = broker.layout.stream(kind).subjects;
    let filters = if filters.is_empty() { &all } else { filters };
    let mut last = None;
    for filter in filters {
        let found = raw_message::last(broker, &name, filter).await;
        let found = found.map_err(|error| Operation::ReadMessage.failed(error))?;
        let place = found.map(|found| Place {
            sequence: found.sequence,
            at: Timestamp::parse(&found.time).unwrap_or_default(),
        });
        last = last.max(place);
    }
    Ok(last)
}

/// The sequence of the first message that a stream has stored at this time or later, as the stream's leader knows it.
pub async fn first_since(
    broker: &Broker,
    kind: StreamKind,
    at: Timestamp,
) -> Result<Option<u64>, Unavailable> {
    let name = broker.layout.stream_name(kind);
    let found = raw_message::next_since(broker, &name, ">", at).await;
    let found = found.map_err(|error| Operation::ReadMessage.failed(error))?;
    Ok(found.map(|found| found.sequence))
}

/// When the first message from `sequence` on was stored whose subject matches, in the stream of this name; none where there is none.
pub async fn stored_at(
    broker: &Broker,
    stream: &str,
    filter: &str,
    sequence: u64,
) -> Result<Option<Timestamp>, Unavailable> {
    let found = raw_message::next(broker, stream, filter, sequence).await;
    let found = found.map_err(|error| Operation::ReadMessage.failed(error))?;
    Ok(found.map(|found| Timestamp::parse(&found.time).unwrap_or_default()))
}

/// What is read of a stream.
#[derive(Clone, Copy)]
struct Part<'a> {
    kind: StreamKind,
    /// The subjects; all where there are none.
    filters: &'a [String],
    /// So many messages at most.
    most: usize,
    /// The last message that is to be read, if it is not removed meanwhile.
    last: Option<Place>,
    /// Whether the bodies are left out.
    headers_only: bool,
}

impl Part<'_> {
    fn consumer(&self, first: u64) -> pull::Config {
        pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: first,
            },
            filter_subjects: self.filters.to_vec(),
            ack_policy: AckPolicy::None,
            inactive_threshold: IDLE,
            memory_storage: true,
            headers_only: self.headers_only,
            ..pull::Config::default()
        }
    }
}

/// Shows `each` what a stream holds from `first` on, up to what is stored now, or until it breaks.
pub async fn read(
    broker: &Broker,
    kind: StreamKind,
    first: u64,
    mut each: impl FnMut(LogMessage) -> ControlFlow<()> + Send,
) -> Result<(), Unavailable> {
    let name = broker.layout.stream_name(kind);
    let all = Part {
        kind,
        filters: &[],
        most: usize::MAX,
        last: last(broker, kind, &[]).await?,
        headers_only: false,
    };
    let mut next = first;
    loop {
        let error = match read_from(broker, all, &mut next, &mut each).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let Some((before, sequence)) = unparsable_from(broker, &name, next).await? else {
            return Err(Operation::ReadMessage.failed(error));
        };
        tracing::warn!(stream = %name, sequence, "A message that no client can parse has no digest.");
        if before > 0 {
            let part = Part {
                most: before,
                ..all
            };
            let read = read_from(broker, part, &mut next, &mut each).await;
            read.map_err(|error| Operation::ReadMessage.failed(error))?;
        }
        next = sequence + 1;
    }
}

/// Shows `each` what a stream holds from `first` on, on subjects that match one of `filters`, up to what is stored now, or until
/// it breaks. No two filters may match the same subject.
pub async fn read_matching(
    broker: &Broker,
    kind: StreamKind,
    filters: &[String],
    first: u64,
    each: impl FnMut(LogMessage) -> ControlFlow<()> + Send,
) -> Result<(), Unavailable> {
    read_part(broker, kind, (filters, false), first, each).await
}

/// The same without the bodies of the messages, for whoever wants to know on which subjects there are some.
pub async fn read_headers(
    broker: &Broker,
    kind: StreamKind,
    filters: &[String],
    first: u64,
    each: impl FnMut(LogMessage) -> ControlFlow<()> + Send,
) -> Result<(), Unavailable> {
    read_part(broker, kind, (filters, true), first, each).await
}

async fn read_part(
    broker: &Broker,
    kind: StreamKind,
    (filters, headers_only): (&[String], bool),
    first: u64,
    mut each: impl FnMut(LogMessage) -> ControlFlow<()> + Send,
) -> Result<(), Unavailable> {
    if filters.is_empty() {
        return Ok(());
    }
    let part = Part {
        kind,
        filters,
        most: usize::MAX,
        last: last(broker, kind, filters).await?,
        headers_only,
    };
    let mut next = first;
    let read = read_from(broker, part, &mut next, &mut each).await;
    read.map_err(|error| Operation::ReadMessage.failed(error))
}

/// Shows `each` the messages of a part of a stream from `next` on, and moves `next` behind each of them.
async fn read_from(
    broker: &Broker,
    part: Part<'_>,
    next: &mut u64,
    each: &mut (impl FnMut(LogMessage) -> ControlFlow<()> + Send),
) -> Result<(), AnyError> {
    let stream = broker.stream(part.kind).await?;
    let mut consumer = stream.create_consumer(part.consumer(*next)).await?;
    let name = consumer.cached_info().name.clone();
    let waiting = usize::try_from(consumer.cached_info().num_pending).unwrap_or(usize::MAX);
    let mut left = waiting.min(part.most);
    let mut delivered = 0;
    'read: loop {
        if left == 0 && delivered < part.most {
            let coming = still_to_come(broker, &mut consumer, part, *next).await?;
            left = coming.min(part.most - delivered);
        }
        if left == 0 {
            break;
        }
        let mut batch = consumer
            .fetch()
            .max_messages(left.min(BATCH))
            .max_bytes(bytes_max(broker))
            .messages()
            .await?;
        let before = left;
        while let Some(message) = batch.next().await {
            let message = match message {
                Ok(message) => message,
                // The bytes that were asked for are used up; the next request goes on, or fails.
                Err(_) if left < before => break,
                Err(error) => return Err(error),
            };
            let info = message.info()?;
            delivered += 1;
            // What was lost on the way must not pass for a gap.
            if info.consumer_sequence != delivered as u64 {
                return Err("a delivery was lost".into());
            }
            left -= 1;
            let (sequence, at) = (
                info.stream_sequence,
                timestamp(info.published.unix_timestamp_nanos()),
            );
            let (message, _) = message.split();
            let shown = each(LogMessage {
                sequence,
                subject: message.subject.to_string(),
                at,
                headers: message.headers.unwrap_or_default(),
                payload: message.payload,
            });
            *next = sequence + 1;
            if shown.is_break() {
                break 'read;
            }
        }
        if left == before {
            left = left_now(&mut consumer, left).await?;
        }
    }
    // It goes by itself, too.
    let _ = stream.delete_consumer(&name).await;
    Ok(())
}

/// How many messages of this part come from `next` on although none was left: none, but where the copy that is read lacked some.
async fn still_to_come(
    broker: &Broker,
    consumer: &mut Consumer<pull::Config>,
    part: Part<'_>,
    next: u64,
) -> Result<usize, AnyError> {
    let begun = Instant::now();
    let is_to_come = |last: Option<Place>| last.is_some_and(|last| next <= last.sequence);
    while is_to_come(part.last) {
        let waiting = usize::try_from(consumer.info().await?.num_pending)?;
        // The last may have been removed meanwhile, as when cases are archived.
        if waiting > 0 || !is_to_come(last(broker, part.kind, part.filters).await?) {
            return Ok(waiting);
        }
        if begun.elapsed() > BEHIND_MAX {
            return Err("the broker that is read from lacks what others have".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(0)
}

/// How many messages are left where none of so many came: what waited may have been removed meanwhile, as when cases are archived.
async fn left_now(consumer: &mut Consumer<pull::Config>, left: usize) -> Result<usize, AnyError> {
    let waiting = usize::try_from(consumer.info().await?.num_pending)?;
    match waiting < left {
        true => Ok(waiting),
        false => Err("the broker does not go on sending".into()),
    }
}

/// The first message from `first` on that no client can parse, and the number of those before it.
async fn unparsable_from(
    broker: &Broker,
    stream: &str,
    first: u64,
) -> Result<Option<(usize, u64)>, Unavailable> {
    let failed = |error: AnyError| Operation::ReadMessage.failed(error);
    let mut next = first;
    for before in 0..SEARCHED_MAX {
        let found = raw_message::next(broker, stream, ">", next).await;
        let Some(found) = found.map_err(|error| failed(error.into()))? else {
            return Ok(None);
        };
        let headers = found.headers().map_err(|error| failed(error.into()))?;
        if unparsable(&found.subject, &headers).is_some() {
            return Ok(Some((before, found.sequence)));
        }
        next = found.sequence + 1;
    }
    Ok(None)
}
