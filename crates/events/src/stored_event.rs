//! The form in which an event is stored.
//!
//! A stored event also carries the complete set of deadlines that its aggregate has open after it, so that whoever keeps time
//! needs no other source.

use concord_wire::MakeSchema;
use concord_wire::id::{MessageId, Token};
use concord_wire::payload::Deadline;
use concord_wire::timestamp::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Aggregate;
use crate::non_event::{Foreign, is_acknowledgement};
use crate::subject::SystemSubject;

/// Most predecessors that a fact names. The oldest of them names those before it, and so on to the first; see
/// `docs/adr/0014`.
pub const EARLIER_MAX: usize = 256;

/// What is known of a fact besides what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventMeta {
    /// Identity, derived from the aggregate and the cause; also the `Nats-Msg-Id`.
    pub event_id: MessageId,
    /// Which aggregate of its kind.
    pub id: Token,
    /// When it was decided.
    pub at: Timestamp,
    /// `message_id` or `event_id` of what caused it.
    pub cause: MessageId,
    /// All deadlines the aggregate has open after this fact.
    #[serde(default)]
    pub deadlines: Vec<Deadline>,
    /// Names of those that are new, or due at another time than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<Token>,
    /// Names of deadlines that were open before this fact and no longer are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Token>,
    /// Stream sequences of the last 256 earlier facts of the aggregate, oldest first; of all of them where there are
    /// fewer. The oldest fact named here names those before it. The lock under which a fact is appended proves the list
    /// complete, so an aggregate is loaded by sequence instead of by a search through the stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = EARLIER_MAX))]
    pub earlier: Vec<u64>,
}

/// A fact in its stored form.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent<E> {
    /// About the fact.
    pub meta: EventMeta,
    /// Its position in the stream of events.
    pub sequence: u64,
    /// What happened.
    pub event: E,
}

/// The stored form, as it is written: the fact's name and contents beside [`EventMeta`]'s fields.
#[derive(Serialize)]
struct StoredRef<'a, E> {
    fact: &'a str,
    aggregate: Aggregate,
    #[serde(flatten)]
    meta: &'a EventMeta,
    data: &'a E,
}

/// The stored form, as it is read. [`EventMeta`]'s fields are repeated, because raw JSON cannot be read beside flattened
/// fields, and a second pass for them costs as much as the first.
#[derive(Deserialize)]
struct StoredEventParts<'a> {
    fact: Token,
    event_id: MessageId,
    id: Token,
    at: Timestamp,
    cause: MessageId,
    #[serde(default)]
    deadlines: Vec<Deadline>,
    #[serde(default)]
    opened: Vec<Token>,
    #[serde(default)]
    closed: Vec<Token>,
    #[serde(default)]
    earlier: Vec<u64>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Why stored bytes are not a fact.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not JSON, or not of the fact's shape.
    #[error("the stored event does not have the form of its fact")]
    Json(#[from] serde_json::Error),
    /// No fact at all: the broker's answer to another message, which somebody had it send here. Readers pass it over.
    #[error("it is {}, and no fact", Foreign::Acknowledgement.as_str())]
    Foreign,
    /// A fact this build does not know: stored by a newer one.
    #[error(
        "the fact {fact:?} of a {aggregate} is not known to this build; run the version that stored it, or a newer one"
    )]
    UnknownFact {
        /// Kind of aggregate.
        aggregate: Aggregate,
        /// The unknown fact.
        fact: String,
    },
}

/// Room for most facts, so that writing one does not begin small and grow.
const USUAL_BYTES: usize = 2_048;

/// The facts of one kind of aggregate. Serialised, a fact is its contents alone, without its name.
pub trait AggregateEvent: Serialize + Sized + Clone + Send + Sync + 'static {
    /// Which kind.
    const AGGREGATE: Aggregate;
    /// All facts with what follows from them.
    const EVENTS: &'static [EventInfo];
    /// The schema of each event's contents, in the order of [`Self::EVENTS`].
    const SCHEMAS: &'static [MakeSchema];

    /// Which fact this is.
    fn name(&self) -> &'static str;
    /// Whether the set of open deadlines may differ after it.
    fn moves_deadlines(&self) -> bool {
        Self::EVENTS
            .iter()
            .any(|info| info.moves_deadlines && info.name == self.name())
    }
    /// Reads the contents of `fact`.
    fn decode(fact: &str, data: &RawValue) -> Result<Self, Error>;
}

/// What follows from a fact, so that consumers are given no more than they need. Tests hold it against the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventInfo {
    /// The fact's token.
    pub name: &'static str,
    /// Messages are published because of it.
    pub has_effects: bool,
    /// The set of open deadlines may differ from before.
    pub moves_deadlines: bool,
    /// One line for the generated reference.
    pub doc: &'static str,
}

impl<E: AggregateEvent> StoredEvent<E> {
    /// The bytes to store.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let stored = StoredRef {
            fact: self.event.name(),
            aggregate: E::AGGREGATE,
            meta: &self.meta,
            data: &self.event,
        };
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut bytes, &stored)?;
        Ok(bytes)
    }

    /// Reads stored bytes; `sequence` is their position in the stream.
    pub fn decode(bytes: &[u8], sequence: u64) -> Result<Self, Error> {
        let StoredEventParts {
            fact,
            event_id,
            id,
            at,
            cause,
            deadlines,
            opened,
            closed,
            earlier,
            data,
        } = serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, error))?;
        let meta = EventMeta {
            event_id,
            id,
            at,
            cause,
            deadlines,
            opened,
            closed,
            earlier,
        };
        Ok(Self {
            meta,
            sequence,
            event: E::decode(fact.as_str(), data)?,
        })
    }

    /// The subject this fact is stored on.
    pub fn subject(&self) -> SystemSubject {
        SystemSubject::Event {
            aggregate: E::AGGREGATE,
            id: self.meta.id.clone(),
            event: Token::fixed(self.event.name()),
        }
    }
}

impl EventMeta {
    /// Reads what is known of a stored fact without reading the fact itself.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, error))
    }
}

/// Why bytes could not be read as a fact. Only here is looked at what is no fact, so that facts are read as fast as ever.
fn unreadable(bytes: &[u8], error: serde_json::Error) -> Error {
    if is_acknowledgement(bytes) {
        Error::Foreign
    } else {
        Error::Json(error)
    }
}

/// What kind of thing a cause is. Senders choose the ids of their messages, so a message must never be taken for a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Something said.
    Message,
    /// An event of another aggregate.
    Event,
}

/// The identity of the one event that `cause` can bring about in an aggregate.
///
/// A step appends at most one event, so aggregate and cause identify it. An append that is tried again, by this
/// process or another, therefore has the same `Nats-Msg-Id` and is stored once.
pub fn event_id(aggregate: Aggregate, id: &Token, origin: Origin, cause: &MessageId) -> MessageId {
    let origin = match origin {
        Origin::Message => "message",
        Origin::Event => "fact",
    };
    let name = [aggregate.as_str(), id.as_str(), origin, cause.as_str()].join("/");
    MessageId::derived(&name)
}
