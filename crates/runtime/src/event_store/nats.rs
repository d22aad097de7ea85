//! The event store on NATS.

use std::collections::BTreeSet;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{
    DirectGetError, DirectGetErrorKind, LastRawMessageErrorKind, Stream,
};
use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, AggregateEvent, StoredEvent};
use concord_wire::{Token, header};
use futures::StreamExt;
use futures::future::try_join_all;

use crate::broker::{Broker, Operation, headers, non_event, publish, raw_message, trace_of};
use crate::event_store::publish::check_size;
use crate::event_store::step::StepCounters;
use crate::event_store::{
    Appended, Consistency, Error, EventStore, LastEvent, Loaded, ScannedEvent, Since, long_chain,
    scan,
};
use crate::telemetry::trace::Trace;

/// The last message under an aggregate.
struct LastMessage {
    /// The last event; none where there is none after the sequence that was asked from.
    event: Option<StreamMessage>,
    /// Sequence of the last message, whether it is an event or not.
    head: u64,
}

/// What handlers need of the world, on a NATS broker: the events here, the rest in `ports/nats.rs`.
#[derive(Clone)]
pub struct NatsPorts {
    /// The connection.
    pub broker: Broker,
    /// Where the steps of this process are counted.
    pub step_counters: StepCounters,
    events: Stream<()>,
}

impl NatsPorts {
    /// On this connection.
    pub async fn new(broker: Broker) -> Result<Self, Error> {
        let events = broker.stream(StreamKind::Events).await?;
        Ok(Self {
            broker,
            step_counters: StepCounters::default(),
            events,
        })
    }

    async fn last_after(
        &self,
        aggregate: Aggregate,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<LastMessage, Error> {
        let subjects = self.broker.subjects();
        let filter = subjects.events_of(aggregate, id);
        let Some(last) = self.last_message(&filter, consistency).await? else {
            return Ok(LastMessage {
                event: None,
                head: 0,
            });
        };
        let head = last.sequence;
        if head <= after || non_event_in(&last, consistency).is_none() {
            return Ok(LastMessage {
                event: Some(last),
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
        let event = Box::pin(self.last_before(&filter, &named, (after, head))).await?;
        Ok(LastMessage { event, head })
    }

    async fn last_message(
        &self,
        filter: &str,
        consistency: Consistency,
    ) -> Result<Option<StreamMessage>, Error> {
        match consistency {
            Consistency::Any => found(self.events.direct_get_last_for_subject(filter).await),
            Consistency::Leader => {
                match self.events.get_last_raw_message_by_subject(filter).await {
                    Ok(message) => Ok(Some(message)),
                    Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                        Ok(None)
                    }
                    Err(error) => Err(Operation::ReadLastEvent.failed(error).into()),
                }
            }
        }
    }

    /// The last event on one subject, as stored.
    async fn last_on(
        &self,
        subject: &str,
        consistency: Consistency,
    ) -> Result<Option<StreamMessage>, Error> {
        let Some(last) = self.last_message(subject, consistency).await? else {
            return Ok(None);
        };
        match non_event_in(&last, consistency) {
            None => Ok(Some(last)),
            Some(_) => Box::pin(self.last_before(subject, &[], (0, last.sequence))).await,
        }
    }

    /// The last event between two sequences, of which the second is that of a message that is none.
    ///
    /// Each message in between is asked for, from the last on that stands last on one of the subjects `named`: few, unless
    /// somebody stores many. The next event is again the last message, and this is over.
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
        let events = on_each.filter(|message| non_event_in(message, Consistency::Any).is_none());
        let mut last = events
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
            if found.sequence <= head && non_event::of_raw_message(&found).is_none() {
                last = Some(found.sequence);
            } else {
                passed_over += 1;
            }
        }
        tracing::warn!(
            subject = filter,
            head,
            passed_over,
            "What stands here is no event; it is passed over."
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
}

fn found(result: Result<StreamMessage, DirectGetError>) -> Result<Option<StreamMessage>, Error> {
    match result {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(Operation::ReadEvent.failed(error).into()),
    }
}

impl EventStore for NatsPorts {
    fn step_counters(&self) -> StepCounters {
        self.step_counters.clone()
    }

    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        let LastMessage { event, head } = self
            .last_after(E::AGGREGATE, id, since.after, consistency)
            .await?;
        let Some(last) = event.filter(|last| last.sequence > since.after) else {
            return Ok(Loaded::nothing(head));
        };
        // The last event names those before it, so they are fetched by sequence instead of by a search.
        let records = self.history(&last.payload, last.sequence, since).await?;
        Ok(Loaded { records, head })
    }

    async fn load_each<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
        each: impl FnMut(StoredEvent<E>) + Send,
    ) -> Result<u64, Error> {
        let LastMessage { event, head } = self
            .last_after(E::AGGREGATE, id, since.after, consistency)
            .await?;
        if let Some(last) = event.filter(|last| last.sequence > since.after) {
            let sequence = last.sequence;
            let last = StoredEvent::decode(&last.payload, sequence)
                .map_err(|source| Error::Unreadable { sequence, source })?;
            long_chain::each(self, last, since, each).await?;
        }
        Ok(head)
    }

    async fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> Result<Appended, Error> {
        let subjects = self.broker.subjects();
        let payload = record.encode()?;
        let bytes = payload.len();
        check_size(&self.broker, bytes)?;
        let mut headers = headers(record.meta.event_id.as_str(), trace);
        headers.insert(header::EXPECTED_LAST_SUBJECT_SEQUENCE, head.to_string());
        headers.insert(
            header::EXPECTED_LAST_SUBJECT,
            subjects.events_of(E::AGGREGATE, &record.meta.id),
        );
        let subject = subjects.build(&record.subject());
        match self.broker.store(subject, headers, payload.into()).await {
            Ok(stored) if stored.duplicate => Ok(Appended::Conflict),
            Ok(stored) => Ok(Appended::Stored {
                sequence: stored.sequence,
                bytes,
            }),
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
        Ok(last.event.map(|message| LastEvent {
            sequence: message.sequence,
            trace: trace_of(Some(&message.headers)),
            payload: message.payload,
        }))
    }

    async fn last_named<E: AggregateEvent>(
        &self,
        id: &Token,
        event: &'static str,
        consistency: Consistency,
    ) -> Result<Option<StoredEvent<E>>, Error> {
        let subject = SystemSubject::Event {
            aggregate: E::AGGREGATE,
            id: id.clone(),
            event: Token::fixed(event),
        };
        let subject = self.broker.subjects().build(&subject);
        let Some(message) = self.last_on(&subject, consistency).await? else {
            return Ok(None);
        };
        let sequence = message.sequence;
        let record = StoredEvent::decode(&message.payload, sequence);
        record
            .map(Some)
            .map_err(|source| Error::Unreadable { sequence, source })
    }

    fn is_archived(&self, aggregate: Aggregate, id: &Token) -> bool {
        self.broker.sealed.contains(aggregate, id)
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

    async fn last_sequence(&self) -> Result<u64, Error> {
        let info = self.events.get_info().await;
        let info = info.map_err(|error| Operation::ReadEvent.failed(error))?;
        Ok(info.state.last_sequence)
    }

    async fn ids(&self, aggregate: Aggregate) -> Result<Vec<Token>, Error> {
        let filter = self.broker.subjects().events_of_kind(aggregate);
        let listed = self.events.info_with_subjects(filter).await;
        let mut listed = listed.map_err(|error| Operation::ListAggregates.failed(error))?;
        let mut ids = BTreeSet::new();
        while let Some(entry) = listed.next().await {
            let (subject, _) = entry.map_err(|error| Operation::ListAggregates.failed(error))?;
            if let Ok(SystemSubject::Event { id, .. }) = self.broker.subjects().parse(&subject) {
                ids.insert(id);
            }
        }
        Ok(ids.into_iter().collect())
    }

    async fn ids_by(
        &self,
        aggregate: Aggregate,
        event: &'static str,
        next: &mut u64,
        end: u64,
    ) -> Result<Vec<Token>, Error> {
        scan::ids(&self.broker, (aggregate, event), next, end).await
    }

    async fn scan(
        &self,
        next: &mut u64,
        mut each: impl FnMut(ScannedEvent) + Send,
    ) -> Result<(), Error> {
        scan::events(&self.broker, next, &mut each).await
    }
}

/// What a message is that was read and is no event; none for an event. A copy of the stream that answers in place of the
/// leader adds the header of a copied message by itself.
fn non_event_in(message: &StreamMessage, consistency: Consistency) -> Option<NonEvent> {
    let own = match consistency {
        Consistency::Any => 1,
        Consistency::Leader => 0,
    };
    NonEvent::of(
        message.headers.get_all(COPIED_FROM).count() > own,
        &message.payload,
    )
}
