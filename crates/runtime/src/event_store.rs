//! What the one step needs of the world: reading and appending events, publishing messages.

pub mod archived;
mod byte_lru;
pub mod cache;
pub mod effects;
mod long_chain;
pub mod nats;
pub(crate) mod publish;
mod scan;
pub mod step;

use bytes::Bytes;
use concord_domain::event_chain::Chain;
use concord_domain::machine::CARRY_EVERY;
use concord_events::{Aggregate, AggregateEvent, Deadline, StoredEvent};
use concord_wire::{Dialect, Envelope, Token};
use futures::future::try_join_all;

use crate::broker::Unavailable;
use crate::broker::publish::Error as NotStored;
use crate::event_store::step::StepCounters;
use crate::telemetry::trace::Trace;

pub use byte_lru::ByteLru;

/// From where to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// From any copy of the stream, which may lag.
    Any,
    /// From the stream's leader: what a decision *not* to append must rest on.
    Leader,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The event is stored.
    Stored {
        /// Its sequence in the stream.
        sequence: u64,
        /// Its size as it was stored, in bytes.
        bytes: usize,
    },
    /// It is not known to be stored: another event was first, or this one had been stored before. Load again to see.
    Conflict,
}

/// Why an event or message was not read or stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The broker could not be reached, did not answer or said no; what was asked may have happened.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A message is missing that must be there, because a later one is.
    #[error("there is no message at or after sequence {sequence}, although a later one was found")]
    NotFound {
        /// The sequence from which on there must be one.
        sequence: u64,
    },
    /// Stored bytes could not be read as an event.
    #[error("the event at sequence {sequence} cannot be read")]
    Unreadable {
        /// Where it is stored.
        sequence: u64,
        /// Why it cannot be read.
        source: concord_events::Error,
    },
    /// An event or message could not be written as JSON.
    #[error("the event or message cannot be written as JSON")]
    Unwritable(#[from] serde_json::Error),
    /// A message could not be compressed.
    #[error("the message cannot be compressed")]
    Uncompressible(#[source] std::io::Error),
    /// An event or message is larger than the broker takes.
    #[error("{bytes} bytes are more than the broker takes in one message")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
}

impl Error {
    /// Whether the broker has said that there is no room for what it was to store.
    pub(crate) fn is_no_room(&self) -> bool {
        let Self::Unavailable(Unavailable { source, .. }) = self else {
            return false;
        };
        matches!(source.downcast_ref(), Some(NotStored::Full(_)))
    }
}

/// Which events of an aggregate are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Since {
    /// Those after this sequence; 0 for all.
    pub after: u64,
    /// The form in which the reader takes a state: of an event that carries one in this form, those before are left out. Without a
    /// form nothing is left out.
    pub form: Option<u32>,
}

impl Since {
    /// All events.
    pub const FIRST: Self = Self {
        after: 0,
        form: None,
    };
}

/// What was read of an aggregate.
#[derive(Debug)]
pub struct Loaded<E> {
    /// Its events, in order.
    pub records: Vec<StoredEvent<E>>,
    /// Sequence of the last message under the aggregate; 0 where there is none. It is what the lock expects, and is that of
    /// the last event unless something was stored there that is no event.
    pub head: u64,
}

impl<E> Loaded<E> {
    /// No events, up to a message.
    pub fn nothing(head: u64) -> Self {
        Self {
            records: Vec::new(),
            head,
        }
    }
}

/// The last event of an aggregate, as it is stored.
#[derive(Debug, Clone)]
pub struct LastEvent {
    /// Its sequence in the stream of events.
    pub sequence: u64,
    /// Its bytes.
    pub payload: Bytes,
    /// The trace context that it brings.
    pub trace: Option<Trace>,
}

/// An event that moves deadlines, as a reader of all events meets it.
#[derive(Debug, Clone)]
pub struct ScannedEvent {
    /// The kind of its aggregate.
    pub aggregate: Aggregate,
    /// The id of the aggregate.
    pub id: Token,
    /// The deadlines that are open after it.
    pub deadlines: Vec<Deadline>,
}

/// Where events are kept.
pub trait EventStore: Send + Sync + 'static {
    /// Where steps on this store are counted; by default nobody reads it.
    fn step_counters(&self) -> StepCounters {
        StepCounters::default()
    }

    /// How many events there are at least from one that carries the state of its aggregate to the next.
    fn carry_every(&self) -> usize {
        CARRY_EVERY
    }

    /// The events of an aggregate that are wanted, in order. What is no event is passed over.
    fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Loaded<E>, Error>> + Send;

    /// Shows `each` the events of an aggregate that are wanted, in order. Returns the sequence of the last message under the aggregate,
    /// as [`Loaded::head`]. Of an aggregate of many events no more than some hundreds are in memory at once.
    fn load_each<E: AggregateEvent>(
        &self,
        id: &Token,
        since: Since,
        consistency: Consistency,
        each: impl FnMut(StoredEvent<E>) + Send,
    ) -> impl Future<Output = Result<u64, Error>> + Send {
        async move {
            let loaded = self.load(id, since, consistency).await?;
            loaded.records.into_iter().for_each(each);
            Ok(loaded.head)
        }
    }

    /// Appends an event if the last message under its aggregate is still that at `head` (0 for none).
    fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<Appended, Error>> + Send;

    /// The last event of an aggregate; none where it has no event.
    fn last(
        &self,
        aggregate: Aggregate,
        id: &Token,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Option<LastEvent>, Error>> + Send;

    /// The last event with this name of an aggregate; none where it has no such event.
    fn last_named<E: AggregateEvent>(
        &self,
        id: &Token,
        event: &'static str,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Option<StoredEvent<E>>, Error>> + Send {
        async move {
            let loaded = self.load::<E>(id, Since::FIRST, consistency).await?;
            let mut records = loaded.records.into_iter().rev();
            Ok(records.find(|record| record.event.name() == event))
        }
    }

    /// The event at a sequence that another event names.
    fn at<E: AggregateEvent>(
        &self,
        sequence: u64,
    ) -> impl Future<Output = Result<StoredEvent<E>, Error>> + Send;

    /// Shows `each` the events from the sequence `next` on that move deadlines, up to what is stored now. Moves `next` behind what was
    /// read, also where it fails: that is where to begin next time.
    fn scan(
        &self,
        next: &mut u64,
        each: impl FnMut(ScannedEvent) + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The sequence of what is stored last in the stream of events, of any aggregate, as the stream's leader has it; 0 where there is
    /// nothing.
    fn last_sequence(&self) -> impl Future<Output = Result<u64, Error>> + Send;

    /// The ids of all aggregates of a kind, in any order, as the stream's leader has them. For kinds of which there are few.
    fn ids(&self, aggregate: Aggregate) -> impl Future<Output = Result<Vec<Token>, Error>> + Send;

    /// The ids of some aggregates of a kind of which there may be many, by their events with this name from the sequence `next` on and
    /// before `end`, in the order of these. Moves `next` behind what was read; when it is `end`, these were the last.
    fn ids_by(
        &self,
        aggregate: Aggregate,
        event: &'static str,
        next: &mut u64,
        end: u64,
    ) -> impl Future<Output = Result<Vec<Token>, Error>> + Send;

    /// Whether the aggregate is in the archive, so that nothing may be appended to it. An archived case is one for ever; what
    /// belongs to it is one until it is removed from the stream, after which nobody knows it.
    fn is_archived(&self, _aggregate: Aggregate, _id: &Token) -> bool {
        false
    }

    /// The events of an aggregate that are wanted, up to a stored one, found by the predecessors that events name: a request
    /// an event, as many at once as one event names.
    ///
    /// An event never changes, so any copy of the stream that has it may answer.
    fn history<E: AggregateEvent>(
        &self,
        last: &[u8],
        sequence: u64,
        since: Since,
    ) -> impl Future<Output = Result<Vec<StoredEvent<E>>, Error>> + Send {
        async move {
            let unreadable = |source| Error::Unreadable { sequence, source };
            let last = StoredEvent::<E>::decode(last, sequence).map_err(unreadable)?;
            let mut chain = Chain::new(last, since.after, since.form);
            loop {
                let missing = chain.missing();
                if missing.is_empty() {
                    return Ok(chain.into_records());
                }
                let fetched = missing.into_iter().map(|sequence| self.at(sequence));
                chain.found(try_join_all(fetched).await?);
            }
        }
    }
}

/// Where messages are published.
pub trait Publisher: Send + Sync + 'static {
    /// Stores all of them, each under its `message_id` and in the dialect of its recipient; done when all are stored.
    fn publish(
        &self,
        messages: &[Envelope],
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores one message under its `message_id`, in a dialect that the caller knows.
    fn publish_in(
        &self,
        dialect: Dialect,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stores one message under its `message_id`, unless its sender has published another for the same recipient and case
    /// under that id before: then that one stands, and this is false.
    fn publish_first(
        &self,
        envelope: &Envelope,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}
