//! The event store of the simulated world, and its bugs.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use concord_domain::event_chain;
use concord_domain::{Machine, MachineVisitor, effect, visit_machine};
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::{SystemFilters, SystemSubject, matches};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, AggregateEvent, EventMeta, StoredEvent};
use concord_runtime::broker::Operation;
use concord_runtime::event_store::Error;
use concord_runtime::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, Since, Trace,
};
use concord_wire::{Envelope, MessageId, Token};

use crate::broker::Publication;
use crate::faults::InjectedBug;
use crate::injected_bugs::early_ack;
use crate::network::{Reply, Request, unanswered};
use crate::ports::SimPorts;

impl SimPorts {
    /// An injected bug: deadlines have no memory and no lock.
    fn forgets<E: AggregateEvent>(&self) -> bool {
        E::AGGREGATE == Aggregate::Deadline
            && self.connection.injected_bug() == Some(InjectedBug::DeadlineTwice)
    }

    /// An injected bug: an event is acknowledged, and not stored.
    fn loses<E: AggregateEvent>(&self, id: &Token) -> bool {
        match self.connection.injected_bug() {
            Some(InjectedBug::MemoryWriteLost) => E::AGGREGATE == Aggregate::Memory,
            Some(InjectedBug::RerunLost) => {
                E::AGGREGATE == Aggregate::Task && id.as_str().starts_with("rerun-")
            }
            _ => false,
        }
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

    /// An injected bug: a part is missing of the state that an event carries.
    fn state_spoilt<E: AggregateEvent>(&self, record: &StoredEvent<E>) -> Option<StoredEvent<E>> {
        if self.connection.injected_bug() != Some(InjectedBug::CarriedStateWrong) {
            return None;
        }
        let mut spoilt = record.clone();
        let parts = spoilt.meta.state.as_mut()?.value.as_object_mut()?;
        let part = parts.values_mut().find_map(|part| {
            let part = part.as_object_mut()?;
            part.keys().next().cloned().map(|first| (part, first))
        });
        let (part, first) = part?;
        part.remove(&first);
        Some(spoilt)
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
    /// The worlds are small.
    fn carry_every(&self) -> usize {
        3
    }

    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        if self.forgets::<E>() {
            return Ok(Loaded::nothing(0));
        }
        let lock = self.connection.subjects().events_of(E::AGGREGATE, id);
        let request = Request::Events {
            lock,
            after: since.after,
            leader: consistency == Consistency::Leader,
        };
        let Reply::Events(events, head) =
            self.connection.ask(Operation::ReadEvent, request).await?
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
            Some(InjectedBug::HeadForgotten) => events.last().map_or(0, |(sequence, ..)| *sequence),
            _ => head,
        };
        let records = events.iter().map(decode).collect::<Result<_, _>>()?;
        Ok(Loaded {
            records: event_chain::from_state(records, since.form),
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
            None => self
                .noticed_anew(record)
                .or_else(|| self.state_spoilt(record)),
            kept => kept,
        };
        let record = changed.as_ref().unwrap_or(record);
        let subjects = self.connection.subjects();
        let event = Publication {
            subject: subjects.build(&record.subject()),
            id: Some(record.meta.event_id.to_string()),
            body: record.encode()?.into(),
            original: None,
        };
        if self.loses::<E>(&record.meta.id) {
            let (sequence, bytes) = (head.saturating_add(1), event.body.len());
            return Ok(Appended::Stored { sequence, bytes });
        }
        let lock = subjects.events_of(E::AGGREGATE, &record.meta.id);
        let expected = (!self.forgets::<E>()).then_some(head);
        match self
            .connection
            .ask(
                Operation::StoreEvent,
                Request::Append {
                    lock,
                    expected,
                    event,
                },
            )
            .await?
        {
            Reply::Appended(appended) => {
                if matches!(appended, Appended::Stored { .. }) {
                    early_ack::after_first(&self.connection);
                }
                Ok(appended)
            }
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

    async fn last_sequence(&self) -> Result<u64, Error> {
        let mut next = 1;
        self.scan(&mut next, |_| {}).await?;
        Ok(next.saturating_sub(1))
    }

    async fn ids(&self, aggregate: Aggregate) -> Result<Vec<Token>, Error> {
        let scan = Request::Scan { first: 1 };
        let asked = self.connection.ask(Operation::ListAggregates, scan).await?;
        let Reply::Events(events, _) = asked else {
            return Ok(Vec::new());
        };
        let subjects = self.connection.subjects();
        let ids = events.iter().filter_map(|(_, subject, _)| {
            let subject = subjects.parse::<SystemSubject>(subject).ok()?;
            match subject {
                SystemSubject::Event {
                    aggregate: kind,
                    id,
                    ..
                } if kind == aggregate => Some(id),
                _ => None,
            }
        });
        let ids: BTreeSet<Token> = ids.collect();
        Ok(ids.into_iter().collect())
    }

    async fn ids_by(
        &self,
        aggregate: Aggregate,
        event: &'static str,
        next: &mut u64,
        end: u64,
    ) -> Result<Vec<Token>, Error> {
        let scan = Request::Scan { first: *next };
        let asked = self.connection.ask(Operation::ListAggregates, scan).await?;
        let Reply::Events(events, _) = asked else {
            *next = end;
            return Ok(Vec::new());
        };
        let filter = self.connection.subjects().event_of_kind(aggregate, event);
        let mut found = events
            .iter()
            .filter(|(_, subject, _)| matches(&filter, subject));
        // One at a time, so that what happens in between is found.
        let first = found.find(|(sequence, _, _)| *sequence < end);
        *next = first.map_or(end, |(sequence, _, _)| sequence + 1);
        let parsed = first.map(|(_, subject, _)| self.connection.subjects().parse(subject));
        Ok(match parsed {
            Some(Ok(SystemSubject::Event { id, .. })) => vec![id],
            _ => Vec::new(),
        })
    }

    async fn scan(
        &self,
        next: &mut u64,
        mut each: impl FnMut(ScannedEvent) + Send,
    ) -> Result<(), Error> {
        let first = *next;
        let reply = self
            .connection
            .ask(Operation::ReadEvent, Request::Scan { first })
            .await?;
        let Reply::Events(events, behind) = reply else {
            return Ok(());
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
        *next = behind;
        Ok(())
    }
}
