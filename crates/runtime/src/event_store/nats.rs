//! The event store and the publisher on NATS.

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{
    DirectGetError, DirectGetErrorKind, LastRawMessageErrorKind, Stream,
};
use bytes::Bytes;
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::subject::Subject;
use concord_wire::{Dialect, Encoding, Envelope, Token, header};
use futures::future::try_join_all;

use crate::broker::non_event;
use crate::broker::publish::{self, Stored};
use crate::broker::raw_message::{self, Described};
use crate::broker::{Broker, Operation, headers, trace_of};
use crate::codec::dialect;
use crate::codec::trace::Trace;
use crate::event_store::{
    Appended, Consistency, Error, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, scan,
};

/// What stands last under an aggregate.
struct Last {
    /// The last fact; none where there is none after what is known.
    fact: Option<StreamMessage>,
    /// Sequence of the last message, a fact or not.
    head: u64,
}

/// Facts and messages on the broker's streams.
#[derive(Clone)]
pub struct NatsEventStore {
    broker: Broker,
    events: Stream<()>,
}

impl NatsEventStore {
    /// On this connection.
    pub async fn new(broker: Broker) -> Result<Self, Error> {
        let events = broker.stream(StreamKind::Events).await?;
        Ok(Self { broker, events })
    }

    async fn last_after(
        &self,
        aggregate: Aggregate,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<Last, Error> {
        let subjects = self.broker.subjects();
        let filter = subjects.events_of(aggregate, id);
        let stands = match consistency {
            Consistency::Any => found(
                self.events
                    .direct_get_last_for_subject(filter.as_str())
                    .await,
            )?,
            Consistency::Leader => match self.events.get_last_raw_message_by_subject(&filter).await
            {
                Ok(message) => Some(message),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => None,
                Err(error) => return Err(Operation::ReadLastEvent.failed(error).into()),
            },
        };
        let Some(stands) = stands else {
            return Ok(Last {
                fact: None,
                head: 0,
            });
        };
        let head = stands.sequence;
        if head <= after || non_event::of_read(&stands, consistency).is_none() {
            return Ok(Last {
                fact: Some(stands),
                head,
            });
        }
        let build = |name: &'static str| {
            subjects.build(&SystemSubject::Event {
                aggregate,
                id: id.clone(),
                event: Token::fixed(name),
            })
        };
        let events = aggregate.events().iter();
        let named: Vec<String> = events.map(|info| build(info.name)).collect();
        let fact = Box::pin(self.last_before(&filter, &named, (after, head))).await?;
        Ok(Last { fact, head })
    }

    /// The last fact on one subject, as stored.
    pub async fn last_on(&self, subject: &str) -> Result<Option<StreamMessage>, Error> {
        let Some(stands) = found(self.events.direct_get_last_for_subject(subject).await)? else {
            return Ok(None);
        };
        match non_event::of_read(&stands, Consistency::Any) {
            None => Ok(Some(stands)),
            Some(_) => Box::pin(self.last_before(subject, &[], (0, stands.sequence))).await,
        }
    }

    /// The last fact between two sequences, of which the second is that of a message that is none.
    ///
    /// Each message in between is asked for, from the last on that stands last on one of the subjects `named`: few, unless
    /// somebody stores many. The next fact is again the last message, and this is over.
    async fn last_before(
        &self,
        filter: &str,
        named: &[String],
        (after, head): (u64, u64),
    ) -> Result<Option<StreamMessage>, Error> {
        // Any copy may answer: what it does not have yet is found below.
        let on_each = named
            .iter()
            .map(async |subject| found(self.events.direct_get_last_for_subject(subject).await));
        let on_each = try_join_all(on_each).await?.into_iter().flatten();
        let facts =
            on_each.filter(|message| non_event::of_read(message, Consistency::Any).is_none());
        let mut last = facts
            .map(|message| message.sequence)
            .filter(|found| (after..head).contains(found))
            .max();
        let mut next = last.unwrap_or(0).max(after) + 1;
        let mut passed_over = 0;
        let stream = self.broker.layout.stream_name(StreamKind::Events);
        while next <= head {
            let found = raw_message::next(&self.broker, &stream, filter, next).await;
            let found = found.map_err(|error| Operation::ReadAmongEvents.failed(error))?;
            // The last one is there, so that there is no other before it must not be believed of what was not answered.
            let found = found.ok_or(Error::NotFound { sequence: next })?;
            next = found.sequence + 1;
            if found.sequence <= head && non_event::of_described(&found).is_none() {
                last = Some(found.sequence);
            } else {
                passed_over += 1;
            }
        }
        tracing::warn!(
            subject = filter,
            head,
            passed_over,
            "What stands here is no fact; it is passed over."
        );
        match last.filter(|last| *last > after) {
            None => Ok(None),
            Some(last) => {
                let message = self.events.get_raw_message(last).await;
                Ok(Some(
                    message.map_err(|error| Operation::ReadEvent.failed(error))?,
                ))
            }
        }
    }

    /// Stores messages, each under its `message_id`; all are sent before the first answer is awaited.
    pub(crate) async fn publish_all(
        broker: &Broker,
        messages: &[(Dialect, &Envelope)],
        trace: Option<&Trace>,
    ) -> Result<(), Error> {
        let written = messages
            .iter()
            .map(|&(spoken, envelope)| Written::new(broker, spoken, envelope, trace));
        let written = written.collect::<Result<Vec<_>, Error>>()?;
        let stored = written.into_iter().map(async |written| {
            let stored = written.store(broker).await?;
            if stored.duplicate {
                displace(broker, &stored, written).await?;
            }
            Ok(())
        });
        try_join_all(stored).await.map(|_| ())
    }
}

impl NatsEventStore {
    /// See [`Broker::publish_first`].
    pub(crate) async fn publish_first(
        broker: &Broker,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<bool, Error> {
        let spoken = dialect::of_recipient(broker, envelope);
        let written = Written::new(broker, spoken, envelope, trace)?;
        let stored = written.store(broker).await?;
        if !stored.duplicate {
            return Ok(true);
        }
        let found = raw_message::at(broker, &stored.stream, stored.sequence).await;
        let found = found.map_err(|error| Operation::ReadMessage.failed(error))?;
        let said = found.and_then(|found| broker.subjects().parse(&found.subject).ok());
        let first = match said {
            Some(Subject::Message { from, to, case, .. }) => {
                from == envelope.from_agent && to == envelope.to_agent && case == envelope.case_id
            }
            _ => false,
        };
        if first {
            return Ok(false);
        }
        displace(broker, &stored, written).await?;
        Ok(true)
    }
}

/// A message as it goes to the broker.
struct Written {
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
}

impl Written {
    fn new(
        broker: &Broker,
        spoken: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<Self, Error> {
        let (subject, payload) = dialect::write(envelope, spoken)?;
        let (subject, payload) = (broker.subjects().build(&subject), Bytes::from(payload));
        let mut headers = headers(envelope.message_id.as_str(), trace);
        let payload = if broker.compresses(&envelope.to_agent, payload.len()) {
            headers.insert(header::CONTENT_ENCODING, Encoding::Gzip.as_str());
            Bytes::from(concord_encoding::gzip(&payload).map_err(Error::Uncompressible)?)
        } else {
            payload
        };
        check_size(broker, payload.len())?;
        if spoken != Dialect::Concord {
            headers.insert(header::DIALECT, spoken.as_str());
        }
        Ok(Self {
            subject,
            headers,
            payload,
        })
    }

    async fn store(&self, broker: &Broker) -> Result<Stored, Error> {
        let stored = broker
            .store(
                self.subject.clone(),
                self.headers.clone(),
                self.payload.clone(),
            )
            .await;
        Ok(stored.map_err(|error| Operation::StoreMessage.failed(error))?)
    }
}

/// Makes sure of a message that the broker says it has already.
///
/// Ids of services' messages can be foreseen, and the broker knows a message by its `Nats-Msg-Id` alone. An agent that
/// publishes anything under such an id would keep the service's message from being stored; what stands there is
/// therefore looked at, and the message is stored without that header when it is another's.
async fn displace(
    broker: &Broker,
    acknowledged: &Stored,
    Written {
        subject,
        headers,
        payload,
    }: Written,
) -> Result<(), Error> {
    let stored = raw_message::at(broker, &acknowledged.stream, acknowledged.sequence).await;
    let stored = stored.map_err(|error| Operation::ReadMessage.failed(error))?;
    // The same in another dialect is the same: what an agent's card says may have been learnt in between.
    let parsed = broker.subjects().parse(&subject);
    let is_same = |stored: Described| {
        let (body, described) = (
            stored.body().ok()?,
            dialect::headers_of(&stored.headers().ok()?),
        );
        let found = dialect::plain(&body, described.as_ref()).ok()?;
        let written = dialect::plain(&payload, Some(&headers)).ok()?;
        Some(stored.subject == subject && dialect::is_same(&found, &written, parsed.as_ref().ok()?))
    };
    if stored.and_then(is_same) == Some(true) {
        return Ok(());
    }
    tracing::warn!(%subject, sequence = acknowledged.sequence, "Another message had taken this message's id.");
    let mut without_id = HeaderMap::new();
    for name in [
        header::DIALECT,
        header::CONTENT_ENCODING,
        header::TRACEPARENT,
        header::TRACESTATE,
    ] {
        if let Some(value) = headers.get(name) {
            without_id.insert(name, value.clone());
        }
    }
    let stored = broker.store(subject, without_id, payload).await;
    stored.map_err(|error| Operation::StoreMessage.failed(error))?;
    Ok(())
}

fn found(result: Result<StreamMessage, DirectGetError>) -> Result<Option<StreamMessage>, Error> {
    match result {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(Operation::ReadEvent.failed(error).into()),
    }
}

/// Room for headers beside a payload.
const HEADER_BYTES: usize = 4_096;

/// Whether the broker takes a payload of this size, with its headers.
pub(crate) fn check_size(broker: &Broker, bytes: usize) -> Result<(), Error> {
    if bytes + HEADER_BYTES > broker.client.max_payload() {
        return Err(Error::TooLarge { bytes });
    }
    Ok(())
}

impl EventStore for NatsEventStore {
    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        let Last { fact, head } = self
            .last_after(E::AGGREGATE, id, after, consistency)
            .await?;
        let Some(last) = fact.filter(|last| last.sequence > after) else {
            return Ok(Loaded::nothing(head));
        };
        // The last fact names those before it, so they are fetched by sequence instead of by a search.
        let records = self.history(&last.payload, last.sequence, after).await?;
        Ok(Loaded { records, head })
    }

    async fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> Result<Appended, Error> {
        let subjects = self.broker.subjects();
        let payload = record.encode()?;
        check_size(&self.broker, payload.len())?;
        let mut headers = headers(record.meta.event_id.as_str(), trace);
        headers.insert(header::EXPECTED_LAST_SUBJECT_SEQUENCE, head.to_string());
        headers.insert(
            header::EXPECTED_LAST_SUBJECT,
            subjects.events_of(E::AGGREGATE, &record.meta.id),
        );
        let subject = subjects.build(&record.subject());
        match self.broker.store(subject, headers, payload.into()).await {
            Ok(stored) if stored.duplicate => Ok(Appended::Conflict),
            Ok(stored) => Ok(Appended::Stored(stored.sequence)),
            Err(publish::Error::Moved) => Ok(Appended::Conflict),
            Err(error) => Err(Operation::StoreEvent.failed(error).into()),
        }
    }

    async fn last(
        &self,
        aggregate: Aggregate,
        id: &Token,
        consistency: Consistency,
    ) -> Result<Option<LastEvent>, Error> {
        let last = self.last_after(aggregate, id, 0, consistency).await?;
        Ok(last.fact.map(|message| LastEvent {
            sequence: message.sequence,
            trace: trace_of(Some(&message.headers)),
            payload: message.payload,
        }))
    }

    async fn last_named<E: AggregateEvent>(
        &self,
        id: &Token,
        event: &'static str,
    ) -> Result<Option<StoredEvent<E>>, Error> {
        let subject = SystemSubject::Event {
            aggregate: E::AGGREGATE,
            id: id.clone(),
            event: Token::fixed(event),
        };
        let subject = self.broker.subjects().build(&subject);
        let Some(message) = self.last_on(&subject).await? else {
            return Ok(None);
        };
        let sequence = message.sequence;
        let record = StoredEvent::decode(&message.payload, sequence);
        record
            .map(Some)
            .map_err(|source| Error::Unreadable { sequence, source })
    }

    async fn at<E: AggregateEvent>(&self, sequence: u64) -> Result<StoredEvent<E>, Error> {
        let message = match found(self.events.direct_get(sequence).await)? {
            Some(message) => message,
            // A copy that lags does not have it yet; the leader does.
            None => {
                let asked = self.events.get_raw_message(sequence).await;
                asked.map_err(|error| Operation::ReadEvent.failed(error))?
            }
        };
        StoredEvent::decode(&message.payload, sequence)
            .map_err(|source| Error::Unreadable { sequence, source })
    }

    async fn scan(
        &self,
        first: u64,
        mut each: impl FnMut(ScannedEvent) + Send,
    ) -> Result<u64, Error> {
        scan::events(&self.broker, &self.events, first, &mut each).await
    }
}

impl Publisher for NatsEventStore {
    async fn publish(&self, messages: &[Envelope], trace: Option<&Trace>) -> Result<(), Error> {
        let spoken = |envelope| dialect::of_recipient(&self.broker, envelope);
        let messages: Vec<_> = messages
            .iter()
            .map(|envelope| (spoken(envelope), envelope))
            .collect();
        Self::publish_all(&self.broker, &messages, trace).await
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
