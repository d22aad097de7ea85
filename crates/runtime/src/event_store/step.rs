//! The one step, by which every service does its work: load, decide, append under the lock.
//!
//! 1. A service pulls a message and makes an input of it; what is not valid is refused and its sender is told.
//! 2. The aggregate is loaded: cached state plus the events after it.
//! 3. The machine decides: at most one event, a refusal, or nothing.
//! 4. The event is appended if nothing was appended to the aggregate meanwhile. Lost the race: load and decide again.
//! 5. What follows from the event is published (see [`crate::event_store::effects`]).
//! 6. The message is acknowledged.
//!
//! Three hazards are met here. A process may end between 4 and 5. Then the message is not acknowledged and is delivered
//! again, and the machine has nothing to append, because it knows the message. Before a step comes to nothing, it is
//! therefore looked whether its cause has led to an event before; what follows from that event is published again, under
//! the same ids. Orders of operators are delivered by nobody again. What follows from them is published by a consumer of
//! their events (see [`Origin::Order`]).
//!
//! An append whose answer was lost may have been stored: the event's id follows from aggregate
//! and cause, so a reload that finds it, saying the same, counts the race as won. Senders choose the ids of their
//! messages, so an event of the same id that says something else is another's: the step decides again, and the machine
//! sees a repetition or a reused id. A read may be stale: an event to append is protected by the lock, and a decision
//! *not* to append is made only on state read from the stream's leader.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_domain::{Context, Decision, Ignored, Machine, Versioned};
use concord_events::{AggregateEvent, EARLIER_MAX, Origin, StoredEvent, event_id};
use concord_wire::{Fault, MessageId, Token};
use lru::LruCache;
use prometheus_client::metrics::counter::Counter;

use crate::event_store::{self, Appended, Consistency, EventStore, Loaded, Publisher, effects};
use crate::telemetry::trace::Trace;

/// How often a lost race is decided again before the message is put back.
const ATTEMPTS_MAX: usize = 32;

/// What a step came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An event was stored.
    Appended {
        /// The name of the event.
        event: &'static str,
        /// Its sequence in the stream of events.
        sequence: u64,
        /// Whether it is the first of its aggregate.
        begins: bool,
        /// How many messages were published because of it.
        effects: usize,
    },
    /// Nothing needed to be done.
    Ignored(Ignored),
    /// The input was refused.
    Rejected(Fault),
}

/// Why a step came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The event store failed.
    #[error("the step on {aggregate} could not be done")]
    EventStore {
        /// The aggregate, as `<kind>/<id>`.
        aggregate: String,
        /// The failure of the event store.
        source: event_store::Error,
    },
    /// The event was stored, and what follows from it could not be published.
    #[error("what follows from an event of {aggregate} could not be published")]
    Effects {
        /// The aggregate, as `<kind>/<id>`.
        aggregate: String,
        /// The failure of the publisher.
        source: event_store::Error,
    },
    /// Others were always first.
    #[error("the race for {aggregate} was lost {ATTEMPTS_MAX} times")]
    Contended {
        /// The aggregate, as `<kind>/<id>`.
        aggregate: String,
    },
}

/// What steps do besides deciding and appending once. Cheap to clone: clones count together.
#[derive(Debug, Clone, Default)]
pub struct StepCounters {
    /// Appends that were not stored because another process was first.
    pub conflicts: Counter,
    /// Reads of an aggregate from the broker, because the process did not have it, or not for certain as it is stored.
    pub reloads: Counter,
}

type Slot<M> = Arc<tokio::sync::Mutex<CachedAggregate<M>>>;

/// An aggregate as this process has it in memory.
struct CachedAggregate<M: Machine> {
    versioned: Versioned<M>,
    /// Sequence of the last message under the aggregate that is known to be no event; see [`Loaded`].
    non_event: u64,
    /// Events with effects of which this process does not know that everything was published, oldest first: id and sequence.
    unconfirmed: VecDeque<(MessageId, u64)>,
}

impl<M: Machine> Default for CachedAggregate<M> {
    fn default() -> Self {
        Self {
            versioned: Versioned::default(),
            non_event: 0,
            unconfirmed: VecDeque::new(),
        }
    }
}

impl<M: Machine> CachedAggregate<M> {
    /// The sequence that the lock expects to be the last under the aggregate.
    fn head(&self) -> u64 {
        self.versioned.sequence().max(self.non_event)
    }

    /// Takes an event into account whose effects somebody else has to publish, or nobody has yet. As many are remembered as an
    /// event names predecessors: more are not stored before the cause of the first is delivered again.
    fn apply_unconfirmed(&mut self, record: StoredEvent<M::Event>) {
        if record.event.has_effects() && record.sequence > self.versioned.sequence() {
            if self.unconfirmed.len() >= EARLIER_MAX {
                self.unconfirmed.pop_front();
            }
            let event_id = record.meta.event_id.clone();
            self.unconfirmed.push_back((event_id, record.sequence));
        }
        self.versioned.apply(record);
    }
}

/// The aggregates of one kind: steps on them, with recent ones in memory.
///
/// Work on one aggregate is serialised inside the process by its slot; across processes the event store's lock decides.
pub struct Aggregates<M: Machine, S> {
    event_store: S,
    counters: StepCounters,
    slots: Mutex<LruCache<Token, Slot<M>>>,
    /// Whether a step publishes what follows from its event.
    publishes: bool,
}

impl<M: Machine, S: EventStore + Publisher> Aggregates<M, S> {
    /// Keeps up to `cached_max` aggregates in memory.
    pub fn new(event_store: S, cached_max: NonZeroUsize) -> Self {
        Self {
            counters: event_store.step_counters(),
            event_store,
            slots: Mutex::new(LruCache::new(cached_max)),
            publishes: true,
        }
    }

    /// The same for a kind of aggregate of whose events a consumer publishes all effects.
    #[must_use]
    pub fn published_by_consumer(self) -> Self {
        Self {
            publishes: false,
            ..self
        }
    }

    fn slot(&self, id: &Token) -> Slot<M> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.get_or_insert(id.clone(), Slot::<M>::default))
    }

    /// Lets go of an aggregate that will not be needed soon.
    pub fn forget(&self, id: &Token) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop(id);
    }

    /// The aggregate as the stream's leader knows it.
    pub async fn load(&self, id: &Token) -> Result<Versioned<M>, Error> {
        let slot = self.slot(id);
        let mut cached = slot.lock().await;
        self.refresh(&mut cached, id, Consistency::Leader, None)
            .await?;
        Ok(cached.versioned.clone())
    }

    /// Does one step. Reading is boxed: most steps do not read, and would be moved about with room for it.
    pub async fn step(
        &self,
        id: &Token,
        context: &Context,
        input: &M::Input,
        trace: Option<&Trace>,
    ) -> Result<Outcome, Error> {
        let slot = self.slot(id);
        let mut cached = slot.lock().await;
        if cached.versioned.sequence() == 0 && !M::creates(input) {
            Box::pin(self.refresh(&mut cached, id, Consistency::Any, None)).await?;
        }
        for _ in 0..ATTEMPTS_MAX {
            let event = match M::decide(&cached.versioned.state, context, input) {
                Decision::Append(event) => event,
                // Not to append is decided only on what the leader knows.
                nothing => {
                    match Box::pin(self.refresh(&mut cached, id, Consistency::Leader, None)).await?
                    {
                        Refreshed::Unchanged => {
                            let again = self.publish_again(&mut cached, id, context, trace);
                            Box::pin(again).await?;
                            return Ok(nothing_to_append(nothing));
                        }
                        Refreshed::Changed | Refreshed::FoundOwn(_) => continue,
                    }
                }
            };
            let mut record = cached.versioned.record(id, context, event);
            let appended = self
                .event_store
                .append(&record, cached.head(), trace)
                .await
                .map_err(|source| failed::<M>(id, source))?;
            if let Appended::Stored(sequence) = appended {
                debug_assert!(
                    sequence > cached.head(),
                    "an event was stored before the one that it follows"
                );
                record.sequence = sequence;
                return self.follow(&mut cached, record, context, trace).await;
            }
            self.counters.conflicts.inc();
            let own = Some(&record);
            if let Refreshed::FoundOwn(stored) =
                Box::pin(self.refresh(&mut cached, id, Consistency::Leader, own)).await?
            {
                Box::pin(self.publish_again(&mut cached, id, context, trace)).await?;
                return Ok(stored);
            }
        }
        Err(Error::Contended {
            aggregate: format!("{}/{id}", M::Event::AGGREGATE),
        })
    }

    /// Takes an event into account that was stored just now, and publishes what follows from it.
    async fn follow(
        &self,
        cached: &mut CachedAggregate<M>,
        record: StoredEvent<M::Event>,
        context: &Context,
        trace: Option<&Trace>,
    ) -> Result<Outcome, Error> {
        let (event, sequence) = (record.event.name(), record.sequence);
        let begins = record.meta.earlier.is_empty();
        debug_assert!(
            context.origin != Origin::Order
                || !record.event.has_effects()
                || M::Event::AGGREGATE.may_be_ordered(event),
            "no consumer publishes what follows from {event} of an order"
        );
        let mut published = Ok(0);
        if self.publishes_for(context) && record.event.has_effects() {
            published = effects::deliver::<M>(&self.event_store, &record, trace).await;
        }
        match published {
            Ok(effects) => {
                cached.versioned.apply(record);
                Ok(Outcome::Appended {
                    event,
                    sequence,
                    begins,
                    effects,
                })
            }
            Err(source) => {
                let aggregate = format!("{}/{}", M::Event::AGGREGATE, record.meta.id);
                cached.apply_unconfirmed(record);
                Err(Error::Effects { aggregate, source })
            }
        }
    }

    fn publishes_for(&self, context: &Context) -> bool {
        self.publishes && context.origin != Origin::Order
    }

    /// Publishes what follows from the event to which this cause has led before, unless it is known that it was published.
    async fn publish_again(
        &self,
        cached: &mut CachedAggregate<M>,
        id: &Token,
        context: &Context,
        trace: Option<&Trace>,
    ) -> Result<(), Error> {
        if !self.publishes_for(context) || cached.unconfirmed.is_empty() {
            return Ok(());
        }
        let own = event_id(M::Event::AGGREGATE, id, context.origin, &context.cause);
        let found = cached.unconfirmed.iter().position(|(id, _)| *id == own);
        let Some((place, sequence)) =
            found.and_then(|place| Some((place, cached.unconfirmed.get(place)?.1)))
        else {
            return Ok(());
        };
        let failed = |source| Error::Effects {
            aggregate: format!("{}/{id}", M::Event::AGGREGATE),
            source,
        };
        let record = self
            .event_store
            .at::<M::Event>(sequence)
            .await
            .map_err(failed)?;
        let published = effects::deliver::<M>(&self.event_store, &record, trace).await;
        published.map_err(failed)?;
        cached.unconfirmed.remove(place);
        Ok(())
    }

    async fn refresh(
        &self,
        cached: &mut CachedAggregate<M>,
        id: &Token,
        consistency: Consistency,
        own: Option<&StoredEvent<M::Event>>,
    ) -> Result<Refreshed, Error> {
        self.counters.reloads.inc();
        let loaded = self
            .event_store
            .load::<M::Event>(id, cached.head(), consistency)
            .await;
        let Loaded { records, head } = loaded.map_err(|source| failed::<M>(id, source))?;
        debug_assert!(
            records.is_sorted_by(|one, next| one.sequence < next.sequence),
            "events are not in the order in which they were stored"
        );
        // Of a copy that lags the head may be an earlier one.
        let last = records
            .last()
            .map_or(cached.versioned.sequence(), |record| record.sequence);
        if head > last {
            cached.non_event = cached.non_event.max(head);
        }
        if records.is_empty() {
            return Ok(Refreshed::Unchanged);
        }
        let same = |own: &StoredEvent<M::Event>, stored: &StoredEvent<M::Event>| {
            own.meta.event_id == stored.meta.event_id && own.event == stored.event
        };
        let mine = own.and_then(|own| records.iter().find(|stored| same(own, stored)));
        let found = mine.map(|record| Outcome::Appended {
            event: record.event.name(),
            sequence: record.sequence,
            begins: record.meta.earlier.is_empty(),
            effects: 0,
        });
        records
            .into_iter()
            .for_each(|record| cached.apply_unconfirmed(record));
        Ok(found.map_or(Refreshed::Changed, Refreshed::FoundOwn))
    }
}

enum Refreshed {
    Unchanged,
    Changed,
    FoundOwn(Outcome),
}

fn nothing_to_append<E>(decision: Decision<E>) -> Outcome {
    match decision {
        Decision::Reject(fault) => Outcome::Rejected(fault),
        Decision::Ignore(reason) => Outcome::Ignored(reason),
        // The caller has taken this case out.
        Decision::Append(_) => Outcome::Ignored(Ignored::AlreadyDone),
    }
}

fn failed<M: Machine>(id: &Token, source: event_store::Error) -> Error {
    Error::EventStore {
        aggregate: format!("{}/{id}", M::Event::AGGREGATE),
        source,
    }
}
