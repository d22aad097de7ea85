//! The ledger and the outbox of the simulated broker: the step that runs here is the step that runs in the services.

use std::sync::Arc;

use bytes::Bytes;
use concord_domain::activation::conversation::WakeMachine;
use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_domain::{Machine, effect};
use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{AggregateEvent, EventMeta, StoredEvent};
use concord_runtime::broker::Operation;
use concord_runtime::event_store::Error;
use concord_runtime::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, Trace,
};
use concord_wire::subject::{Lane, Subject};
use concord_wire::{Dialect, Envelope, Token};

use crate::broker::{Publication, Receipt};
use crate::faults::Plant;
use crate::network::{Connection, Reply, Request, unanswered};

/// Facts and messages on the simulated broker.
#[derive(Clone)]
pub(crate) struct SimLedger(pub(crate) Connection);

impl SimLedger {
    /// The last fact of an aggregate.
    pub(crate) async fn last(
        &self,
        aggregate: Aggregate,
        id: &Token,
        consistency: Consistency,
    ) -> Result<Option<EventMeta>, Error> {
        let lock = self.0.subjects().events_of(aggregate, id);
        let request = Request::Events {
            lock,
            after: 0,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(facts, _) = self.0.ask(Operation::ReadLastEvent, request).await? else {
            return Ok(None);
        };
        let Some((sequence, _, bytes)) = facts.last() else {
            return Ok(None);
        };
        let meta = EventMeta::decode(bytes).map_err(|source| Error::Unreadable {
            sequence: *sequence,
            source,
        })?;
        Ok(Some(meta))
    }

    /// Whether another had said something under the id of this message, so that it was not stored. Nobody else publishes
    /// on its subject.
    fn is_of_another(
        &self,
        kind: StreamKind,
        receipt: &Receipt,
        publication: &Publication,
    ) -> bool {
        let world = self.0.world.lock();
        let stored = world.broker.message(kind, receipt.sequence);
        receipt.duplicate
            && stored.is_some_and(|stored| stored.publication.subject != publication.subject)
    }

    /// A planted bug: deadlines have no memory and no lock.
    fn forgets<E: AggregateEvent>(&self) -> bool {
        E::AGGREGATE == Aggregate::Deadline && self.0.plant() == Some(Plant::DeadlineTwice)
    }

    /// A planted bug: a debate that climbs leaves open what its level waited for.
    async fn level_deadlines_kept<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
    ) -> Result<Option<StoredEvent<E>>, Error> {
        let climbs = E::AGGREGATE == Aggregate::Debate
            && ["escalated", "fell_back"].contains(&record.event.name());
        if !climbs || self.0.plant() != Some(Plant::LevelDeadlineKept) {
            return Ok(None);
        }
        let mut kept = record.clone();
        let before = self
            .last(Aggregate::Debate, &record.meta.id, Consistency::Leader)
            .await?
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

    /// A planted bug: what would follow from the fact, were it stored next, is published now.
    async fn publish_early<E: AggregateEvent>(&self, record: &StoredEvent<E>) -> Result<(), Error> {
        let bytes = record.encode()?;
        let next = self
            .0
            .world
            .lock()
            .broker
            .messages(StreamKind::Events)
            .len() as u64
            + 1;
        let messages = match E::AGGREGATE {
            Aggregate::Case => messages_of::<CaseMachine>(&bytes, next),
            Aggregate::Debate => messages_of::<DebateMachine>(&bytes, next),
            Aggregate::Detection => messages_of::<DetectionMachine>(&bytes, next),
            Aggregate::Agent => messages_of::<AgentMachine>(&bytes, next),
            Aggregate::Request => messages_of::<RequestMachine>(&bytes, next),
            Aggregate::Wake => messages_of::<WakeMachine>(&bytes, next),
            Aggregate::Deadline
            | Aggregate::TrackRecord
            | Aggregate::Precedent
            | Aggregate::ReviewQueue => Vec::new(),
        };
        self.publish(&messages, None).await
    }
}

fn messages_of<M: Machine>(bytes: &[u8], sequence: u64) -> Vec<Envelope> {
    let record = StoredEvent::<M::Event>::decode(bytes, sequence);
    record
        .ok()
        .and_then(|record| effect::messages::<M>(&record).ok())
        .unwrap_or_default()
}

impl EventStore for SimLedger {
    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        if self.forgets::<E>() {
            return Ok(Loaded::nothing(0));
        }
        let lock = self.0.subjects().events_of(E::AGGREGATE, id);
        let request = Request::Events {
            lock,
            after,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(facts, head) = self.0.ask(Operation::ReadEvent, request).await? else {
            return Ok(Loaded::nothing(0));
        };
        let decode = |(sequence, _, bytes): &(u64, String, Arc<[u8]>)| {
            StoredEvent::decode(bytes, *sequence).map_err(|source| Error::Unreadable {
                sequence: *sequence,
                source,
            })
        };
        let head = match self.0.plant() {
            Some(Plant::HeadForgotten) => facts.last().map_or(0, |(sequence, ..)| *sequence),
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
        if self.0.plant() == Some(Plant::EffectBeforeEvent) {
            self.publish_early(record).await?;
        }
        let kept = self.level_deadlines_kept(record).await?;
        let record = kept.as_ref().unwrap_or(record);
        let subjects = self.0.subjects();
        let fact = Publication {
            subject: subjects.build(&record.subject()),
            id: Some(record.meta.event_id.to_string()),
            body: record.encode()?.into(),
            original: None,
        };
        let lock = subjects.events_of(E::AGGREGATE, &record.meta.id);
        let expected = (!self.forgets::<E>()).then_some(head);
        match self
            .0
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
        let lock = self.0.subjects().events_of(aggregate, id);
        let request = Request::Events {
            lock,
            after: 0,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(events, _) = self.0.ask(Operation::ReadLastEvent, request).await? else {
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
            .0
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
            .0
            .ask(Operation::ReadEvent, Request::Scan { first })
            .await?;
        let Reply::Events(events, next) = reply else {
            return Ok(first);
        };
        let subjects = self.0.subjects();
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

impl Publisher for SimLedger {
    /// All are sent before the first answer is awaited.
    async fn publish(&self, messages: &[Envelope], _: Option<&Trace>) -> Result<(), Error> {
        let subjects = self.0.subjects();
        let forgotten = usize::from(self.0.plant() == Some(Plant::EffectForgotten));
        let mut answers = Vec::with_capacity(messages.len());
        for envelope in messages.iter().skip(forgotten) {
            let subject = envelope.subject();
            let kind = match &subject {
                Subject::Message {
                    lane: Lane::Urgent, ..
                } => StreamKind::Urgent,
                _ => StreamKind::Messages,
            };
            let publication = Publication {
                subject: subjects.build(&subject),
                id: Some(envelope.message_id.to_string()),
                body: serde_json::to_vec(envelope)?.into(),
                original: None,
            };
            let answer = self.0.send(Request::Publish {
                kind,
                publication: publication.clone(),
            });
            answers.push((kind, publication, answer));
        }
        for (kind, publication, answer) in answers {
            let reply = answer
                .await
                .ok_or_else(|| unanswered(Operation::StoreMessage))?;
            if matches!(reply, Reply::Published(receipt) if self.is_of_another(kind, &receipt, &publication))
            {
                let publication = Publication {
                    id: None,
                    ..publication
                };
                self.0
                    .ask(
                        Operation::StoreMessage,
                        Request::Publish { kind, publication },
                    )
                    .await?;
            }
        }
        Ok(())
    }

    /// Every agent of this world writes and reads the one form.
    async fn publish_in(
        &self,
        _: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> Result<(), Error> {
        self.publish(std::slice::from_ref(envelope), trace).await
    }

    /// Nothing in this world is published so.
    async fn publish_first(&self, _: &Envelope, _: Option<&Trace>) -> Result<bool, Error> {
        Err(unanswered(Operation::StoreMessage))
    }
}
