//! What the one step needs of the world: reading and appending facts, publishing messages.

pub mod effects;
pub mod nats;
pub mod step;

use concord_events::{AggregateEvent, StoredEvent};
use concord_wire::{Envelope, Token};

use crate::broker::Unavailable;
use crate::codec::trace::Trace;

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
    /// The fact is stored, at this sequence.
    Stored(u64),
    /// It is not known to be stored: another fact was first, or this one had been stored before. Load again to see.
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

/// What was read of an aggregate.
#[derive(Debug)]
pub struct Loaded<E> {
    /// Its facts, in order.
    pub records: Vec<StoredEvent<E>>,
    /// Sequence of the last message under the aggregate; 0 where there is none. It is what the lock expects, and is that of
    /// the last fact unless something was stored there that is no fact.
    pub head: u64,
}

impl<E> Loaded<E> {
    /// No facts, up to a message.
    pub fn nothing(head: u64) -> Self {
        Self {
            records: Vec::new(),
            head,
        }
    }
}

/// Where facts are kept.
pub trait EventStore: Send + Sync + 'static {
    /// The facts of an aggregate after the sequence `after`, in order; 0 for all. What is no fact is passed over.
    fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Loaded<E>, Error>> + Send;

    /// Appends a fact if the last message under its aggregate is still that at `head` (0 for none).
    fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<Appended, Error>> + Send;
}

/// Where messages are published.
pub trait Publisher: Send + Sync + 'static {
    /// Stores all of them, each under its `message_id`; done when all are stored.
    fn publish(
        &self,
        messages: &[Envelope],
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

impl<T: EventStore> EventStore for std::sync::Arc<T> {
    async fn load<E: AggregateEvent>(
        &self,
        id: &Token,
        after: u64,
        consistency: Consistency,
    ) -> Result<Loaded<E>, Error> {
        (**self).load(id, after, consistency).await
    }

    async fn append<E: AggregateEvent>(
        &self,
        record: &StoredEvent<E>,
        head: u64,
        trace: Option<&Trace>,
    ) -> Result<Appended, Error> {
        (**self).append(record, head, trace).await
    }
}
