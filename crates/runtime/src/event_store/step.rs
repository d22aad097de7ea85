//! The one step, by which every service does its work: load, decide, append under the lock.
//!
//! 1. A service pulls a message and makes an input of it; what is not valid is refused and its sender is told.
//! 2. The aggregate is loaded: cached state plus the events after it.
//! 3. The machine decides: at most one event, a refusal, or nothing.
//! 4. The event is appended if nothing was appended to the aggregate meanwhile. Lost the race: load and decide again.
//! 5. The message is acknowledged.
//!
//! What an event makes others do is not published here but from the stored event (see [`crate::event_store::effects`]).
//!
//! Two hazards are met here. An append whose answer was lost may have been stored: the event's id follows from aggregate
//! and cause, so a reload that finds it, saying the same, counts the race as won. Senders choose the ids of their
//! messages, so an event of the same id that says something else is another's: the step decides again, and the machine
//! sees a repetition or a reused id. A read may be stale: an event to append is protected by the lock, and a decision
//! *not* to append is made only on state read from the stream's leader.

use concord_domain::rules::size_budget::json_bytes;
use concord_domain::{Context, Decision, Ignored, Machine, Versioned};
use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::{ErrorCode, Fault, Token};
use prometheus_client::metrics::counter::Counter;

use crate::event_store::cache::{Cache, Weight};
use crate::event_store::{self, Appended, Consistency, EventStore, Since};
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

type Slot<M> = tokio::sync::Mutex<CachedAggregate<M>>;

/// An aggregate as this process has it in memory.
struct CachedAggregate<M: Machine> {
    versioned: Versioned<M>,
    /// Sequence of the last message under the aggregate that is known to be no event; see [`Loaded`].
    non_event: u64,
    /// How large it is, as the cache counts.
    weight: Weight,
}

impl<M: Machine> Default for CachedAggregate<M> {
    fn default() -> Self {
        Self {
            versioned: Versioned::default(),
            non_event: 0,
            weight: Weight::default(),
        }
    }
}

impl<M: Machine> CachedAggregate<M> {
    /// Takes an event into account that takes so many bytes as JSON.
    fn apply(&mut self, record: StoredEvent<M::Event>, bytes: usize) {
        let ends = M::ends(&record.event);
        self.versioned.apply(record);
        self.weight.add::<M>(&self.versioned.state, bytes, ends);
    }

    /// Takes the next event into account that was loaded; false when all events are to be loaded (see [`Versioned::catch_up`]).
    fn catch_up(&mut self, record: StoredEvent<M::Event>) -> bool {
        let carried = record.meta.state.as_ref();
        let carried = carried.map_or(0, |carried| json_bytes(&carried.value));
        let bytes = carried.saturating_add(json_bytes(&record.event));
        let ends = M::ends(&record.event);
        let is_applied = self.versioned.catch_up(record);
        if is_applied {
            self.weight.add::<M>(&self.versioned.state, bytes, ends);
        }
        is_applied
    }

    /// The sequence that the lock expects to be the last under the aggregate.
    fn head(&self) -> u64 {
        self.versioned.sequence().max(self.non_event)
    }
}

/// The aggregates of one kind: steps on them, with recent ones in memory.
///
/// Work on one aggregate is serialised inside the process by its slot; across processes the event store's lock decides.
pub struct Aggregates<M: Machine, S> {
    event_store: S,
    counters: StepCounters,
    cache: Cache,
    machine: std::marker::PhantomData<fn() -> M>,
}

impl<M: Machine, S: EventStore> Aggregates<M, S> {
    /// Keeps recent aggregates in `cache`, beside those of other kinds.
    pub fn new(event_store: S, cache: &Cache) -> Self {
        Self {
            counters: event_store.step_counters(),
            event_store,
            cache: cache.clone(),
            machine: std::marker::PhantomData,
        }
    }

    /// Lets go of an aggregate that will not be needed soon.
    pub fn forget(&self, id: &Token) {
        self.cache.forget::<Slot<M>>(id);
    }

    /// The aggregate as the stream's leader knows it.
    pub async fn load(&self, id: &Token) -> Result<Versioned<M>, Error> {
        let slot = self.cache.slot::<Slot<M>>(id);
        let mut cached = slot.lock().await;
        self.refresh(&mut cached, id, Consistency::Leader, None)
            .await?;
        self.cache.weigh(id, &slot, cached.weight);
        Ok(cached.versioned.clone())
    }

    /// The aggregate with everything up to `sequence`: as this process has it in memory where that suffices, which costs no request; else as
    /// the stream's leader knows it. For decisions that a later event corrects.
    pub async fn load_up_to(&self, id: &Token, sequence: u64) -> Result<Versioned<M>, Error> {
        let slot = self.cache.slot::<Slot<M>>(id);
        let mut cached = slot.lock().await;
        if cached.versioned.sequence() < sequence {
            self.refresh(&mut cached, id, Consistency::Leader, None)
                .await?;
        }
        self.cache.weigh(id, &slot, cached.weight);
        Ok(cached.versioned.clone())
    }

    /// The aggregate as some copy of the stream has it, which may lag: a quarter of what asking the leader costs. For what may be a
    /// moment old, and for what a step looks at again before it decides.
    pub async fn peek(&self, id: &Token) -> Result<Versioned<M>, Error> {
        let slot = self.cache.slot::<Slot<M>>(id);
        let mut cached = slot.lock().await;
        self.refresh(&mut cached, id, Consistency::Any, None)
            .await?;
        self.cache.weigh(id, &slot, cached.weight);
        Ok(cached.versioned.clone())
    }

    /// Does one step.
    pub async fn step(
        &self,
        id: &Token,
        context: &Context,
        input: &M::Input,
        trace: Option<&Trace>,
    ) -> Result<Outcome, Error> {
        let done = self.step_and(id, (context, input), trace, |_| ()).await;
        done.map(|(outcome, ())| outcome)
    }

    /// Does one step, and reads something of the state that it has left.
    pub async fn step_and<T>(
        &self,
        id: &Token,
        decided: (&Context, &M::Input),
        trace: Option<&Trace>,
        read: impl FnOnce(&M::State) -> T,
    ) -> Result<(Outcome, T), Error> {
        if self.event_store.is_archived(M::Event::AGGREGATE, id) {
            let refused = Outcome::Rejected(archived::<M>(id));
            return Ok((refused, read(&M::State::default())));
        }
        let slot = self.cache.slot::<Slot<M>>(id);
        let mut cached = slot.lock().await;
        let done = self.step_on(&mut cached, id, decided, trace).await;
        self.cache.weigh(id, &slot, cached.weight);
        Ok((done?, read(&cached.versioned.state)))
    }

    /// Does one step on an aggregate. Reading is boxed: most steps do not read, and would be moved about with room for it.
    async fn step_on(
        &self,
        cached: &mut CachedAggregate<M>,
        id: &Token,
        (context, input): (&Context, &M::Input),
        trace: Option<&Trace>,
    ) -> Result<Outcome, Error> {
        if cached.versioned.sequence() == 0 && !M::creates(input) {
            Box::pin(self.refresh(cached, id, Consistency::Any, None)).await?;
        }
        for _ in 0..ATTEMPTS_MAX {
            let event = match M::decide(&cached.versioned.state, context, input) {
                Decision::Append(event) => event,
                // Not to append is decided only on what the leader knows.
                nothing => {
                    match Box::pin(self.refresh(cached, id, Consistency::Leader, None)).await? {
                        Refreshed::Unchanged => return Ok(nothing_to_append(nothing)),
                        Refreshed::Changed | Refreshed::FoundOwn(_) => continue,
                    }
                }
            };
            let mut record = cached.versioned.record(id, context, event);
            let every = self.event_store.carry_every();
            cached.versioned.carry(&mut record, every);
            let appended = self
                .event_store
                .append(&record, cached.head(), trace)
                .await
                .map_err(|source| failed::<M>(id, source))?;
            if let Appended::Stored { sequence, bytes } = appended {
                debug_assert!(
                    sequence > cached.head(),
                    "an event was stored before the one that it follows"
                );
                record.sequence = sequence;
                let event = record.event.name();
                cached.apply(record, bytes);
                return Ok(Outcome::Appended { event, sequence });
            }
            self.counters.conflicts.inc();
            let own = Some(&record);
            if let Refreshed::FoundOwn(stored) =
                Box::pin(self.refresh(cached, id, Consistency::Leader, own)).await?
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
        cached: &mut CachedAggregate<M>,
        id: &Token,
        consistency: Consistency,
        own: Option<&StoredEvent<M::Event>>,
    ) -> Result<Refreshed, Error> {
        self.counters.reloads.inc();
        let form = M::CARRY.as_ref().map(|carry| carry.form);
        let since = Since {
            after: cached.head(),
            // An event of this step may stand before the one that carries the state.
            form: form.filter(|_| own.is_none()),
        };
        let read = self.read(cached, id, (since, consistency), own).await?;
        if let Some(refreshed) = read {
            return Ok(refreshed);
        }
        let all = (
            Since {
                after: cached.head(),
                form: None,
            },
            consistency,
        );
        let read = self.read(cached, id, all, own).await?;
        debug_assert!(read.is_some(), "nothing is left out of all events");
        match read {
            Some(Refreshed::FoundOwn(stored)) => Ok(Refreshed::FoundOwn(stored)),
            Some(Refreshed::Changed) => Ok(Refreshed::Changed),
            // What went back to nothing has changed, although nothing was read.
            _ if cached.head() < since.after => Ok(Refreshed::Changed),
            _ => Ok(Refreshed::Unchanged),
        }
    }

    /// Reads the events that are wanted, and takes each into account; none where all are to be read: one is left out and the state cannot
    /// be read that stands for it, or the stream went back, as that of a broker that was restored from an older copy, and what is in
    /// memory rests on events that do not exist. Another process may have gone on from there.
    async fn read(
        &self,
        cached: &mut CachedAggregate<M>,
        id: &Token,
        (since, consistency): (Since, Consistency),
        own: Option<&StoredEvent<M::Event>>,
    ) -> Result<Option<Refreshed>, Error> {
        let mut refreshed = Refreshed::Unchanged;
        let mut is_complete = true;
        let known = cached.versioned.sequence();
        let mut rests_on = None;
        let read = self
            .event_store
            .load_each::<M::Event>(id, since, consistency, |record| {
                if !is_complete || rests_on.is_some() {
                    return;
                }
                rests_on = cached.versioned.replaced_by(&record, known);
                if rests_on.is_some() {
                    return;
                }
                let is_own = own.is_some_and(|own| {
                    own.meta.event_id == record.meta.event_id && own.event == record.event
                });
                let (event, sequence) = (record.event.name(), record.sequence);
                is_complete = cached.catch_up(record);
                if is_own {
                    refreshed = Refreshed::FoundOwn(Outcome::Appended { event, sequence });
                } else if matches!(refreshed, Refreshed::Unchanged) {
                    refreshed = Refreshed::Changed;
                }
            });
        let head = read.await.map_err(|source| failed::<M>(id, source))?;
        // Of any other copy it only says that the copy lags.
        let is_shorter = consistency == Consistency::Leader && head < since.after;
        if let Some(left) = rests_on.or(is_shorter.then_some(head)) {
            went_back::<M>(id, known.max(since.after), left);
            *cached = CachedAggregate::default();
            return Ok(None);
        }
        // Of a copy that lags the head may be an earlier one. Where an event is left out, the aggregate is not known up to it.
        if is_complete && head > cached.versioned.sequence() {
            cached.non_event = cached.non_event.max(head);
        }
        Ok(is_complete.then_some(refreshed))
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

fn archived<M: Machine>(id: &Token) -> Fault {
    let aggregate = M::Event::AGGREGATE;
    Fault::new(
        ErrorCode::InvalidRequest,
        "",
        format!(
            "The {aggregate} {id} is archived: it was over long ago, and nothing more happens to it."
        ),
        "Open a case under another id; operators read archived cases with `concord case show`.",
    )
}

/// Says that events are gone that were known. An aggregate of which nothing is left may have been archived.
fn went_back<M: Machine>(id: &Token, known: u64, left: u64) {
    let aggregate = M::Event::AGGREGATE;
    if left == 0 {
        tracing::info!(%aggregate, %id, known, "Nothing is stored of this any more; what was known of it is forgotten.");
    } else {
        tracing::warn!(
            %aggregate, %id, known, left,
            "The stream of events went back: the last events that were known are not stored any more. What is stored is read again."
        );
    }
}

fn failed<M: Machine>(id: &Token, source: event_store::Error) -> Error {
    Error::EventStore {
        aggregate: format!("{}/{id}", M::Event::AGGREGATE),
        source,
    }
}
