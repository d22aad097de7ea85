//! The one step, by which every service does its work: load, decide, append under the lock.
//!
//! 1. A service pulls a message and makes an input of it; what is not valid is refused and its sender is told.
//! 2. The aggregate is loaded: cached state plus the facts after it.
//! 3. The machine decides: at most one fact, a refusal, or nothing.
//! 4. The fact is appended if nothing was appended to the aggregate meanwhile. Lost the race: load and decide again.
//! 5. The message is acknowledged.
//!
//! What a fact makes others do is not published here but from the stored fact (see [`crate::event_store::effects`]).
//!
//! Two hazards are met here. An append whose answer was lost may have been stored: the fact's id follows from aggregate
//! and cause, so a reload that finds it, saying the same, counts the race as won. Senders choose the ids of their
//! messages, so a fact of the same id that says something else is another's: the step decides again, and the machine
//! sees a repetition or a reused id. A read may be stale: a fact to append is protected by the lock, and a decision
//! *not* to append is made only on state read from the stream's leader.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_domain::{Context, Decision, Ignored, Machine, Versioned};
use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::{Fault, Token};
use lru::LruCache;

use crate::event_store::{self, Appended, Consistency, EventStore, Loaded};
use crate::telemetry::trace::Trace;

/// How often a lost race is decided again before the message is put back.
const ATTEMPTS_MAX: usize = 32;

/// What a step came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A fact was stored.
    Appended {
        /// Which fact.
        fact: &'static str,
        /// Where.
        sequence: u64,
    },
    /// Nothing needed to be done.
    Ignored(Ignored),
    /// The input was refused.
    Rejected(Fault),
}

/// Why a step came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger failed.
    #[error("the step on {aggregate} could not be done")]
    EventStore {
        /// Which aggregate.
        aggregate: String,
        /// Why.
        source: event_store::Error,
    },
    /// Others were always first.
    #[error("the race for {aggregate} was lost {ATTEMPTS_MAX} times")]
    Contended {
        /// Which aggregate.
        aggregate: String,
    },
}

type Slot<M> = Arc<tokio::sync::Mutex<Known<M>>>;

/// An aggregate as this process knows it.
struct Known<M: Machine> {
    versioned: Versioned<M>,
    /// Sequence of the last message under the aggregate that is known to be no fact; see [`ledger::Loaded`].
    foreign: u64,
}

impl<M: Machine> Default for Known<M> {
    fn default() -> Self {
        Self {
            versioned: Versioned::default(),
            foreign: 0,
        }
    }
}

impl<M: Machine> Known<M> {
    /// What the lock expects.
    fn head(&self) -> u64 {
        self.versioned.sequence().max(self.foreign)
    }
}

/// The aggregates of one kind: steps on them, with recent ones in memory.
///
/// Work on one aggregate is serialised inside the process by its slot; across processes the ledger's lock decides.
pub struct Aggregates<M: Machine, L> {
    ledger: L,
    slots: Mutex<LruCache<Token, Slot<M>>>,
}

impl<M: Machine, L: EventStore> Aggregates<M, L> {
    /// Keeps up to `cached_max` aggregates in memory.
    pub fn new(ledger: L, cached_max: NonZeroUsize) -> Self {
        Self {
            ledger,
            slots: Mutex::new(LruCache::new(cached_max)),
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
        let mut known = slot.lock().await;
        self.refresh(&mut known, id, Consistency::Leader, None)
            .await?;
        Ok(known.versioned.clone())
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
        let mut known = slot.lock().await;
        if known.versioned.sequence() == 0 && !M::creates(input) {
            Box::pin(self.refresh(&mut known, id, Consistency::Any, None)).await?;
        }
        for _ in 0..ATTEMPTS_MAX {
            let event = match M::decide(&known.versioned.state, context, input) {
                Decision::Append(event) => event,
                // Not to append is decided only on what the leader knows.
                nothing => {
                    match Box::pin(self.refresh(&mut known, id, Consistency::Leader, None)).await? {
                        Refreshed::Unchanged => return Ok(nothing_to_append(nothing)),
                        Refreshed::Changed | Refreshed::FoundOwn(_) => continue,
                    }
                }
            };
            let mut record = known.versioned.record(id, context, event);
            let appended = self
                .ledger
                .append(&record, known.head(), trace)
                .await
                .map_err(|source| failed::<M>(id, source))?;
            if let Appended::Stored(sequence) = appended {
                record.sequence = sequence;
                let fact = record.event.name();
                known.versioned.apply(record);
                return Ok(Outcome::Appended { fact, sequence });
            }
            let own = Some(&record);
            if let Refreshed::FoundOwn(stored) =
                Box::pin(self.refresh(&mut known, id, Consistency::Leader, own)).await?
            {
                return Ok(stored);
            }
        }
        Err(Error::Contended {
            aggregate: format!("{}/{id}", M::Event::AGGREGATE),
        })
    }

    async fn refresh(
        &self,
        known: &mut Known<M>,
        id: &Token,
        consistency: Consistency,
        own: Option<&StoredEvent<M::Event>>,
    ) -> Result<Refreshed, Error> {
        let loaded = self
            .ledger
            .load::<M::Event>(id, known.head(), consistency)
            .await;
        let Loaded { records, head } = loaded.map_err(|source| failed::<M>(id, source))?;
        // Of a copy that lags the head may be an earlier one.
        let last = records
            .last()
            .map_or(known.versioned.sequence(), |record| record.sequence);
        known.foreign = if head > last {
            known.foreign.max(head)
        } else {
            known.foreign
        };
        if records.is_empty() {
            return Ok(Refreshed::Unchanged);
        }
        let same = |own: &StoredEvent<M::Event>, stored: &StoredEvent<M::Event>| {
            own.meta.event_id == stored.meta.event_id && own.event == stored.event
        };
        let mine = own.and_then(|own| records.iter().find(|stored| same(own, stored)));
        let found = mine.map(|record| Outcome::Appended {
            fact: record.event.name(),
            sequence: record.sequence,
        });
        records
            .into_iter()
            .for_each(|record| known.versioned.apply(record));
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
