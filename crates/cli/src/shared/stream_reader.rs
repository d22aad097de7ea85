//! Reading streams: from one end to the other, in batches, in order.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use bytes::Bytes;
use concord_archive::ArchivedMessage;
use concord_events::dead_letter::is_letter;
use concord_events::non_event::NonEvent;
use concord_events::topology::StreamKind;
use concord_runtime::broker::{log_reader, non_event};
use concord_runtime::event_store::archived::{self, ArchivedPart};
use concord_runtime::{Broker, broker, codec::dialect};
use concord_wire::Timestamp;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Deserialize;

use crate::shared::archive_reader::ArchiveReader;
use crate::shared::failure::{Failure, NO_STREAMS};

/// How long a reader waits for the next message that the broker has.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a silence the broker is asked whether what was to come has been removed.
const SILENCE: Duration = Duration::from_secs(2);
/// A progress bar is shown for at least this many messages.
const SHORT: u64 = 2_000;

/// A message as it is stored in a stream.
pub(crate) struct StreamMessage {
    /// Its sequence in the stream.
    pub(crate) sequence: u64,
    /// Its subject.
    pub(crate) subject: String,
    /// The time at which the broker stored it.
    pub(crate) at: Timestamp,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its body, decompressed.
    pub(crate) payload: Bytes,
    /// Its body, as it is stored.
    pub(crate) raw: Bytes,
    /// Whether it was read from the archive, because its stream holds it no longer.
    pub(crate) is_archived: bool,
    /// Why a message in the stream of events is no event of a service; none for events, and where bodies were not read.
    pub(crate) non_event: Option<NonEvent>,
}

impl StreamMessage {
    /// Whether a message names the sender that its subject names. The broker lets nobody else publish there, and looks into no body.
    pub(crate) fn is_by_its_sender(&self) -> bool {
        #[derive(Deserialize)]
        struct Said {
            from_agent: String,
        }
        let said = serde_json::from_slice::<Said>(&self.payload);
        // The subject ends in sender, recipient and type.
        let sender = self.subject.rsplit('.').nth(2);
        said.is_ok_and(|said| sender == Some(said.from_agent.as_str()))
    }

    fn new(kind: StreamKind, message: async_nats::jetstream::Message) -> Result<Self, Failure> {
        let info = message
            .info()
            .map_err(|error| Failure::failed(format!("the broker sent nonsense: {error}")))?;
        let (sequence, published) = (info.stream_sequence, info.published.unix_timestamp_nanos());
        let (message, _) = message.split();
        let place = (sequence, broker::timestamp(published));
        let headers = message.headers.unwrap_or_default();
        Ok(Self::stored(
            kind,
            place,
            message.subject.to_string(),
            headers,
            message.payload,
        ))
    }

    /// A message of a stream of this kind: its sequence and time, its subject, headers, and body as it is stored.
    pub(crate) fn stored(
        kind: StreamKind,
        (sequence, at): (u64, Timestamp),
        subject: String,
        headers: HeaderMap,
        raw: Bytes,
    ) -> Self {
        let non_event = match kind {
            StreamKind::Events => non_event::of_stored(Some(&headers), &raw),
            _ => None,
        };
        // What cannot be expanded is shown, and counts, as it is.
        let plain = dialect::plain(&raw, Some(&headers))
            .ok()
            .map(|body| body.into_owned());
        Self {
            sequence,
            subject,
            at,
            headers,
            payload: plain.map_or_else(|| raw.clone(), Bytes::from),
            raw,
            is_archived: false,
            non_event,
        }
    }

    pub(crate) fn archived(message: ArchivedMessage) -> Self {
        let headers = archived::headers_of(&message);
        let place = (message.sequence, message.at);
        Self {
            is_archived: true,
            ..Self::stored(
                message.stream,
                place,
                message.subject,
                headers,
                message.payload,
            )
        }
    }

    /// A header's value; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.as_str())
    }

    /// Whether it is a letter, of those in the stream of dead letters.
    pub(crate) fn is_letter(&self) -> bool {
        is_letter(|name| self.headers.get(name).is_some())
    }
}

/// The part of a stream that is read.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(super) stream: StreamKind,
    pub(super) filters: Vec<String>,
    headers_only: bool,
    pub(super) new_only: bool,
    pub(super) since: Option<Timestamp>,
    non_events: bool,
    pub(super) archived: ArchivedPart,
}

impl Scope {
    /// A whole stream.
    pub(crate) fn all(stream: StreamKind) -> Self {
        Self {
            stream,
            filters: Vec::new(),
            headers_only: false,
            new_only: false,
            since: None,
            non_events: false,
            archived: ArchivedPart::All,
        }
    }

    /// With nothing of the archive but this, so that no more of it is read than is needed.
    pub(crate) fn archived_in(self, archived: ArchivedPart) -> Self {
        Self { archived, ..self }
    }

    /// The messages whose subjects match a filter.
    pub(crate) fn of(stream: StreamKind, filter: String) -> Self {
        Self::any_of(stream, vec![filter])
    }

    /// The messages whose subjects match any of these filters.
    pub(crate) fn any_of(stream: StreamKind, filters: Vec<String>) -> Self {
        Self {
            filters,
            ..Self::all(stream)
        }
    }

    /// Without bodies.
    pub(crate) fn without_bodies(self) -> Self {
        Self {
            headers_only: true,
            ..self
        }
    }

    /// With messages in the stream of events that no service wrote, which are left out otherwise.
    pub(crate) fn with_non_events(self) -> Self {
        Self {
            non_events: true,
            ..self
        }
    }

    /// Only what is stored from now on.
    pub(crate) fn new_only(self) -> Self {
        Self {
            new_only: true,
            ..self
        }
    }

    /// Only what was stored from then on; everything where there is no such time.
    pub(crate) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    fn config(&self, broker: &Broker) -> OrderedConfig {
        let nanos = |since: Timestamp| {
            (i128::from(since.unix_millis()) * 1_000_000).clamp(0, i64::MAX.into())
        };
        // The broker counts nanoseconds from 1970 to 2262: nothing was stored before, and nothing will be after.
        let since = self
            .since
            .and_then(|since| time::OffsetDateTime::from_unix_timestamp_nanos(nanos(since)).ok());
        let deliver_policy = match since {
            _ if self.new_only => DeliverPolicy::New,
            Some(start_time) => DeliverPolicy::ByStartTime { start_time },
            None => DeliverPolicy::All,
        };
        let read = match self.headers_only {
            true => OrderedConfig::default(),
            false => broker::bounded(&broker.client),
        };
        OrderedConfig {
            filter_subjects: self.filters.clone(),
            headers_only: self.headers_only,
            deliver_policy,
            ..read
        }
    }
}

/// The number of messages that are stored already, and a stream of them and of all that follow. Messages in the stream of
/// events that are no events are marked.
pub(crate) async fn follow(
    broker: &Broker,
    scope: &Scope,
) -> Result<
    (
        u64,
        impl futures::Stream<Item = Result<StreamMessage, Failure>> + Unpin + use<>,
    ),
    Failure,
> {
    let stream = broker.stream(scope.stream).await?;
    let name = broker.layout.stream_name(scope.stream);
    let consumer = stream
        .create_consumer(scope.config(broker))
        .await
        .map_err(|error| missing(&name, &error))?;
    let waiting = consumer.cached_info().num_pending;
    let messages = consumer
        .messages()
        .await
        .map_err(|error| unreadable(&name, &error))?;
    let kind = scope.stream;
    let stored = messages.map(move |message| match message {
        Ok(message) => StreamMessage::new(kind, message),
        Err(error) => Err(unreadable(&name, &error)),
    });
    Ok((waiting, stored))
}

fn missing(stream: &str, error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!("the stream {stream} cannot be read ({error})")).and(NO_STREAMS)
}

fn unreadable(stream: &str, error: &dyn std::error::Error) -> Failure {
    Failure::failed(format!(
        "the stream {stream} cannot be read: {error}; `concord doctor` looks for the cause"
    ))
}

/// The sequence of the last message of a scope that is stored now; 0 where there is none.
async fn last_stored(broker: &Broker, scope: &Scope) -> Result<u64, Failure> {
    let last = log_reader::last(broker, scope.stream, &scope.filters).await;
    let name = broker.layout.stream_name(scope.stream);
    let last = last.map_err(|error| missing(&name, &error))?;
    Ok(last
        .filter(|last| scope.since.is_none_or(|since| last.at >= since))
        .map_or(0, |last| last.sequence))
}

/// Reads the messages that are stored now, in order; their number.
///
/// It ends at the last of them, or where the stream holds none any more up to there: what was counted when it began may be removed meanwhile.
pub(crate) async fn for_each(
    broker: &Broker,
    scope: &Scope,
    what: &'static str,
    mut take: impl FnMut(StreamMessage) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    // Asked first: the consumer may be on a copy that lacks what is new, and then the rest comes when it has it.
    let last = last_stored(broker, scope).await?;
    let (waiting, mut messages) = follow(broker, scope).await?;
    // After the consumer of the stream: what was removed from the stream before is in the archive by now.
    let mut archive = ArchiveReader::new(broker, scope).await?;
    let bar = progress(what, waiting);
    let (mut read, mut of_archive, mut seen) = (0, 0, 0);
    let mut heard = Instant::now();
    let mut take = |stored: StreamMessage| {
        if scope.non_events || stored.non_event.is_none() {
            take(stored)?;
        }
        Ok(())
    };
    while seen < last {
        let next = tokio::time::timeout(SILENCE, messages.next()).await;
        let Ok(next) = next else {
            // What was to come has been removed meanwhile, as when cases are archived.
            if last_stored(broker, scope).await? <= seen {
                break;
            }
            if heard.elapsed() < PATIENCE {
                continue;
            }
            let name = broker.layout.stream_name(scope.stream);
            return Err(Failure::failed(format!(
                "the broker does not go on sending the stream {name}; try again"
            )));
        };
        let Some(stored) = next else { break };
        let stored = stored?;
        heard = Instant::now();
        of_archive += archive.take_before(stored.sequence, &mut take).await?;
        archive.pass_over(stored.sequence).await?;
        seen = stored.sequence;
        take(stored)?;
        read += 1;
        bar.inc(1);
    }
    of_archive += archive.take_before(u64::MAX, &mut take).await?;
    bar.finish_and_clear();
    Ok(read + of_archive)
}

/// A progress bar on standard error, where that is a terminal.
pub(crate) fn progress(what: &'static str, length: u64) -> ProgressBar {
    if length < SHORT || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(length).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use concord_runtime::broker::provision;
    use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
    use concord_testkit::TestBroker;
    use tokio::runtime::Handle;

    use super::*;

    /// More than the broker sends a reader at once.
    const EVENTS: u64 = 1_200;

    async fn broker_with_events(server: &TestBroker) -> Broker {
        let settings = BrokerSettings {
            servers: server.url(),
            ..BrokerSettings::default()
        };
        let storage = StorageSettings::default();
        let broker = Broker::connect("test", &settings, &storage, true);
        let broker = broker.await.unwrap();
        provision::streams(&broker).await.unwrap();
        let opened =
            include_str!("../../../../proto-schemas/examples/accepted/event.case.opened.json");
        for number in 0..EVENTS {
            let subject = format!("concord.v1.event.case.c{number}.opened");
            let stored = broker.jetstream.publish(subject, opened.into()).await;
            stored.unwrap().await.unwrap();
        }
        broker
    }

    /// Removes what stands before this sequence, before anything else is read.
    fn remove_before(broker: &Broker, sequence: u64) {
        let removed = async {
            let stream = broker.stream(StreamKind::Events).await.unwrap();
            stream.purge().sequence(sequence).await.unwrap();
        };
        tokio::task::block_in_place(|| Handle::current().block_on(removed));
    }

    /// As when cases go to the archive while they are listed.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_removed_while_it_is_read_ends_the_reading() {
        // All, and all but the last.
        for (before, last) in [(EVENTS + 1, None), (EVENTS, Some(EVENTS))] {
            let server = TestBroker::start().await;
            let broker = broker_with_events(&server).await;
            let mut sequences = Vec::new();
            let begun = Instant::now();
            let scope = Scope::all(StreamKind::Events).without_bodies();
            let read = for_each(&broker, &scope, "reading", |stored| {
                if sequences.is_empty() {
                    remove_before(&broker, before);
                }
                sequences.push(stored.sequence);
                Ok(())
            });
            let read = read.await.unwrap();
            assert!((1..EVENTS).contains(&read), "{read} were read");
            assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
            let expected = last.unwrap_or(read);
            assert_eq!(sequences.last(), Some(&expected));
        }
    }

    /// As where the last case that was said something in has gone to the archive, and earlier ones stay.
    #[tokio::test]
    async fn all_before_a_last_message_that_was_removed_is_read() {
        let server = TestBroker::start().await;
        let broker = broker_with_events(&server).await;
        let stream = broker.stream(StreamKind::Events).await.unwrap();
        stream.delete_message(EVENTS).await.unwrap();
        let scope = Scope::all(StreamKind::Events).without_bodies();
        let read = for_each(&broker, &scope, "reading", |_| Ok(())).await;
        assert_eq!(read.unwrap(), EVENTS - 1);
    }
}
