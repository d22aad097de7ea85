//! The ports of a process in the simulated world: the handlers that run on them are the services' own.
//!
//! Bugs of the event store, the publisher and the clock are injected here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use concord_domain::{Machine, MachineVisitor, effect, visit_machine};
use concord_events::dead_letter::header as dead;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::{Layout, StreamKind};
use concord_events::{Aggregate, AggregateEvent, EventMeta, StoredEvent};
use concord_runtime::broker::{Operation, Unavailable};
use concord_runtime::codec::message_lookup::Stored as FoundMessage;
use concord_runtime::codec::{self, StoredMessage, read_message};
use concord_runtime::event_store::Error;
use concord_runtime::ports::{
    ArmedDeadline, Clock, DeadLetters, Headers, MessageLookup, Ports, Preferences, Timers,
};
use concord_runtime::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, Trace,
};
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{AgentId, Dialect, Envelope, MessageId, Timestamp, Token, dialect, header};

use crate::broker::{Publication, Receipt};
use crate::faults::InjectedBug;
use crate::network::{Connection, Reply, Request, unanswered};
use crate::world::instant;

/// How much earlier than the world's clock the injected bug lets deadlines fire.
const EARLY_MS: u64 = 100;

/// What one process needs of the world.
#[derive(Clone)]
pub(crate) struct SimPorts {
    pub(crate) connection: Connection,
    service: Service,
    layout: Arc<Layout>,
    /// The unique text that the next request of an operator is given, so that the checks know it again.
    next_unique: Arc<Mutex<Option<String>>>,
}

impl SimPorts {
    pub(crate) fn new(service: Service, connection: Connection) -> Self {
        Self {
            service,
            connection,
            layout: Arc::new(Layout::default()),
            next_unique: Arc::default(),
        }
    }

    /// The next id that a handler asks for is made of this text.
    pub(crate) fn set_next_unique(&self, text: &str) {
        let mut next = self
            .next_unique
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *next = Some(text.to_owned());
    }

    /// Whether another had said something under the id of this message, so that it was not stored. Nobody else publishes
    /// on its subject.
    fn is_of_another(
        &self,
        kind: StreamKind,
        receipt: &Receipt,
        publication: &Publication,
    ) -> bool {
        let world = self.connection.world.lock();
        let stored = world.broker.message(kind, receipt.sequence);
        receipt.duplicate
            && stored.is_some_and(|stored| stored.publication.subject != publication.subject)
    }

    /// An injected bug: deadlines have no memory and no lock.
    fn forgets<E: AggregateEvent>(&self) -> bool {
        E::AGGREGATE == Aggregate::Deadline
            && self.connection.injected_bug() == Some(InjectedBug::DeadlineTwice)
    }

    /// An injected bug: whoever notices that a deadline has passed makes an event of its own.
    fn noticed_anew<E: AggregateEvent>(&self, record: &StoredEvent<E>) -> Option<StoredEvent<E>> {
        if !self.forgets::<E>() {
            return None;
        }
        let noticed = self.connection.world.lock().random.next();
        let mut anew = record.clone();
        anew.meta.event_id = MessageId::new(format!("noticed-{noticed}")).ok()?;
        Some(anew)
    }

    /// An injected bug: a debate that climbs leaves open what its level waited for.
    async fn level_deadlines_kept<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
    ) -> Result<Option<StoredEvent<E>>, Error> {
        let climbs = E::AGGREGATE == Aggregate::Debate
            && ["escalated", "fell_back"].contains(&record.event.name());
        if !climbs || self.connection.injected_bug() != Some(InjectedBug::LevelDeadlineKept) {
            return Ok(None);
        }
        let mut kept = record.clone();
        let before = self
            .last(Aggregate::Debate, &record.meta.id, Consistency::Leader)
            .await?
            .and_then(|last| EventMeta::decode(&last.payload).ok())
            .map(|meta| meta.deadlines);
        kept.meta.deadlines.extend(
            before
                .into_iter()
                .flatten()
                .filter(|open| record.meta.closed.contains(&open.name)),
        );
        kept.meta.closed.clear();
        Ok(Some(kept))
    }

    /// An injected bug: what would follow from the event, were it stored next, is published now.
    async fn publish_early<E: AggregateEvent>(&self, record: &StoredEvent<E>) -> Result<(), Error> {
        let bytes = record.encode()?;
        let next = self
            .connection
            .world
            .lock()
            .broker
            .messages(StreamKind::Events)
            .len() as u64
            + 1;
        let messages = visit_machine(
            E::AGGREGATE,
            Effects {
                bytes: &bytes,
                sequence: next,
            },
        );
        self.publish(&messages, None).await
    }
}

/// The messages that follow from an event.
struct Effects<'a> {
    bytes: &'a [u8],
    sequence: u64,
}

impl MachineVisitor for Effects<'_> {
    type Output = Vec<Envelope>;

    fn visit<M: Machine>(self) -> Vec<Envelope> {
        let record = StoredEvent::<M::Event>::decode(self.bytes, self.sequence);
        record
            .ok()
            .and_then(|record| effect::messages::<M>(&record).ok())
            .unwrap_or_default()
    }
}

impl EventStore for SimPorts {
    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        if self.forgets::<E>() {
            return Ok(Loaded::nothing(0));
        }
        let lock = self.connection.subjects().events_of(E::AGGREGATE, id);
        let request = Request::Events {
            lock,
            after,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(facts, head) = self.connection.ask(Operation::ReadEvent, request).await?
        else {
            return Ok(Loaded::nothing(0));
        };
        let decode = |(sequence, _, bytes): &(u64, String, Arc<[u8]>)| {
            StoredEvent::decode(bytes, *sequence).map_err(|source| Error::Unreadable {
                sequence: *sequence,
                source,
            })
        };
        let head = match self.connection.injected_bug() {
            Some(InjectedBug::HeadForgotten) => facts.last().map_or(0, |(sequence, ..)| *sequence),
            _ => head,
        };
        Ok(Loaded {
            records: facts.iter().map(decode).collect::<Result<_, _>>()?,
            head,
        })
    }

    async fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        _: Option<&Trace>,
    ) -> Result<Appended, Error> {
        if self.connection.injected_bug() == Some(InjectedBug::EffectBeforeEvent) {
            self.publish_early(record).await?;
        }
        let changed = match self.level_deadlines_kept(record).await? {
            None => self.noticed_anew(record),
            kept => kept,
        };
        let record = changed.as_ref().unwrap_or(record);
        let subjects = self.connection.subjects();
        let fact = Publication {
            subject: subjects.build(&record.subject()),
            id: Some(record.meta.event_id.to_string()),
            body: record.encode()?.into(),
            original: None,
        };
        let lock = subjects.events_of(E::AGGREGATE, &record.meta.id);
        let expected = (!self.forgets::<E>()).then_some(head);
        match self
            .connection
            .ask(
                Operation::StoreEvent,
                Request::Append {
                    lock,
                    expected,
                    fact,
                },
            )
            .await?
        {
            Reply::Appended(appended) => Ok(appended),
            _ => Ok(Appended::Conflict),
        }
    }

    async fn last(
        &self,
        aggregate: Aggregate,
        id: &Token,
        consistency: Consistency,
    ) -> Result<Option<LastEvent>, Error> {
        let lock = self.connection.subjects().events_of(aggregate, id);
        let request = Request::Events {
            lock,
            after: 0,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(events, _) = self
            .connection
            .ask(Operation::ReadLastEvent, request)
            .await?
        else {
            return Ok(None);
        };
        Ok(events.last().map(|(sequence, _, bytes)| LastEvent {
            sequence: *sequence,
            payload: Bytes::copy_from_slice(bytes),
            trace: None,
        }))
    }

    async fn at<E: AggregateEvent>(&self, sequence: u64) -> Result<StoredEvent<E>, Error> {
        let reply = self
            .connection
            .ask(Operation::ReadEvent, Request::At { sequence })
            .await?;
        let Reply::Events(events, _) = reply else {
            return Err(unanswered(Operation::ReadEvent));
        };
        let Some((sequence, _, bytes)) = events.first() else {
            return Err(unanswered(Operation::ReadEvent));
        };
        StoredEvent::decode(bytes, *sequence).map_err(|source| Error::Unreadable {
            sequence: *sequence,
            source,
        })
    }

    async fn scan(
        &self,
        first: u64,
        mut each: impl FnMut(ScannedEvent) + Send,
    ) -> Result<u64, Error> {
        let reply = self
            .connection
            .ask(Operation::ReadEvent, Request::Scan { first })
            .await?;
        let Reply::Events(events, next) = reply else {
            return Ok(first);
        };
        let subjects = self.connection.subjects();
        for (_, subject, bytes) in events {
            let Ok(SystemSubject::Event {
                aggregate,
                id,
                event,
            }) = subjects.parse(&subject)
            else {
                continue;
            };
            if !aggregate.leaves_deadlines(event.as_str())
                && !is_acknowledgement(&bytes)
                && let Ok(meta) = EventMeta::decode(&bytes)
            {
                each(ScannedEvent {
                    aggregate,
                    id,
                    deadlines: meta.deadlines,
                });
            }
        }
        Ok(next)
    }
}

impl SimPorts {
    fn publication(&self, envelope: &Envelope, dialect: Dialect) -> Result<Written, Error> {
        let subject = envelope.subject();
        let kind = match &subject {
            Subject::Message { lane, .. } => StreamKind::of_lane(*lane),
            _ => StreamKind::Messages,
        };
        let body = match dialect {
            Dialect::Concord => serde_json::to_vec(envelope)?,
            // What a dialect cannot say is not simulated; such a message is written in the usual form.
            other => match dialect::write(envelope, other) {
                Ok(body) => body,
                Err(_) => serde_json::to_vec(envelope)?,
            },
        };
        let publication = Publication {
            subject: self.layout.subjects.build(&subject),
            id: Some(envelope.message_id.to_string()),
            body: body.into(),
            original: None,
        };
        Ok(Written { kind, publication })
    }

    /// Stores messages; all are sent before the first answer is awaited.
    async fn store_all(&self, messages: Vec<Written>) -> Result<(), Error> {
        let answers: Vec<_> = messages
            .into_iter()
            .map(|written| {
                let answer = self.connection.send(Request::Publish {
                    kind: written.kind,
                    publication: written.publication.clone(),
                });
                (written, answer)
            })
            .collect();
        for (Written { kind, publication }, answer) in answers {
            let reply = answer
                .await
                .ok_or_else(|| unanswered(Operation::StoreMessage))?;
            if matches!(reply, Reply::Published(receipt) if self.is_of_another(kind, &receipt, &publication))
            {
                let publication = Publication {
                    id: None,
                    ..publication
                };
                self.connection
                    .ask(
                        Operation::StoreMessage,
                        Request::Publish { kind, publication },
                    )
                    .await?;
            }
        }
        Ok(())
    }
}

/// A message as it goes to the broker.
struct Written {
    kind: StreamKind,
    publication: Publication,
}

impl Publisher for SimPorts {
    async fn publish(&self, messages: &[Envelope], _: Option<&Trace>) -> Result<(), Error> {
        let forgotten =
            usize::from(self.connection.injected_bug() == Some(InjectedBug::EffectForgotten));
        let written = messages
            .iter()
            .skip(forgotten)
            .map(|envelope| self.publication(envelope, Dialect::Concord));
        self.store_all(written.collect::<Result<_, _>>()?).await
    }

    async fn publish_in(
        &self,
        dialect: Dialect,
        envelope: &Envelope,
        _: Option<&Trace>,
    ) -> Result<(), Error> {
        let written = self.publication(envelope, dialect)?;
        self.store_all(vec![written]).await
    }

    /// No handler of this world publishes so.
    async fn publish_first(&self, _: &Envelope, _: Option<&Trace>) -> Result<bool, Error> {
        Err(unanswered(Operation::StoreMessage))
    }
}

impl DeadLetters for SimPorts {
    fn has_room_for(&self, _: usize) -> bool {
        true
    }

    async fn keep(&self, subject: String, headers: Headers, body: Bytes) -> Result<(), Error> {
        let text = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        let stream = text(dead::STREAM).unwrap_or_default();
        let kind = StreamKind::ALL
            .iter()
            .find(|kind| self.layout.stream_name(**kind) == stream);
        let sequence = text(dead::SEQUENCE).and_then(|sequence| sequence.parse().ok());
        let pointer = text(dead::POINTER).unwrap_or_default();
        let publication = Publication {
            subject,
            id: text(header::MESSAGE_ID),
            body: body.as_ref().into(),
            original: kind
                .zip(sequence)
                .map(|(kind, sequence)| (*kind, sequence, pointer)),
        };
        let request = Request::Publish {
            kind: StreamKind::Dead,
            publication,
        };
        self.connection
            .ask(Operation::StoreDeadLetter, request)
            .await
            .map(|_| ())
    }
}

impl Clock for SimPorts {
    fn now(&self) -> Timestamp {
        let now = self.connection.now();
        let is_early = self.service == Service::EscalationTimer
            && self.connection.injected_bug() == Some(InjectedBug::EarlyFire);
        if is_early {
            now.plus_millis(EARLY_MS)
        } else {
            now
        }
    }

    async fn sleep(&self, time: Duration) {
        self.connection.sleep(time).await;
    }
}

impl Timers for SimPorts {
    async fn arm(&self, deadline: &ArmedDeadline) -> Result<(), Error> {
        let request = Request::Arm {
            target: self.target(deadline.aggregate, &deadline.id, &deadline.name),
            due: deadline.due,
            body: serde_json::to_vec(deadline)?.into(),
        };
        let asked = self.connection.ask(Operation::ScheduleDeadline, request);
        asked.await.map(|_| ())
    }

    async fn cancel(&self, aggregate: Aggregate, id: &Token, name: &Token) -> Result<(), Error> {
        let target = self.target(aggregate, id, name);
        let asked = self
            .connection
            .ask(Operation::ScheduleDeadline, Request::Cancel { target });
        asked.await.map(|_| ())
    }

    /// Nobody lists deadlines in this world.
    async fn armed(&self, _: usize) -> Result<Vec<ArmedDeadline>, Error> {
        Err(unanswered(Operation::ListDeadlines))
    }
}

impl SimPorts {
    /// The subject on which the scheduler publishes a deadline.
    fn target(&self, aggregate: Aggregate, id: &Token, name: &Token) -> String {
        self.layout.subjects.build(&SystemSubject::TimerDue {
            aggregate,
            id: id.clone(),
            name: name.clone(),
        })
    }
}

impl MessageLookup for SimPorts {
    async fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        sequence: u64,
    ) -> Result<Option<FoundMessage>, Unavailable> {
        let request = Request::NextMessage {
            kind: StreamKind::of_lane(lane),
            filter: filter.to_owned(),
            sequence,
        };
        let reply = self.connection.send(request).await;
        let reply = reply.ok_or_else(|| Operation::FindMessage.failed("no answer came in time"))?;
        let Reply::Found(Some(found)) = reply else {
            return Ok(None);
        };
        let message = StoredMessage {
            subject: &found.publication.subject,
            headers: None,
            body: &found.publication.body,
            sequence: found.sequence,
            stored_at: instant(found.at),
        };
        let read = read_message(self.subjects(), &message, |envelope, _| {
            self.with_payload(envelope)
        });
        Ok(Some(FoundMessage {
            sequence: found.sequence,
            stored_at: message.stored_at,
            envelope: read.await.ok(),
        }))
    }

    /// Nobody keeps a payload apart from its message in this world.
    async fn with_payload(&self, envelope: Envelope) -> Result<Envelope, codec::Error> {
        Ok(envelope)
    }
}

/// No card of this world names a dialect.
impl Preferences for SimPorts {
    fn dialect_by_card(&self, _: &AgentId) -> Option<Dialect> {
        None
    }

    fn wrote_in(&self, _: &AgentId, _: Dialect) {}
}

impl Ports for SimPorts {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn unique_id(&self) -> String {
        let next = self
            .next_unique
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        next.unwrap_or_else(|| format!("unique {}", self.connection.world.lock().random.next()))
    }
}
