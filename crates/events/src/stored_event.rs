//! The form in which an event is stored.
//!
//! A stored event also carries the complete set of deadlines that its aggregate has open after it, so that whoever keeps time
//! needs no other source.

use concord_wire::MakeSchema;
use concord_wire::id::{MessageId, Token};
use concord_wire::payload::{Deadline, Snapshot};
use concord_wire::timestamp::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Aggregate;
use crate::non_event::{NonEvent, is_acknowledgement};
use crate::subject::SystemSubject;

/// How many predecessors an event names at most. The oldest of them names those before it, and so on to the first; see
/// `docs/adr/0014`.
pub const EARLIER_MAX: usize = 256;

/// The state of an aggregate before an event, as the event carries it: whoever has it needs none of the events before. It says
/// nothing that they do not say, and whoever does not know its form reads them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedState {
    /// The form of `value`, by the kind of aggregate.
    pub form: u32,
    /// The state.
    pub value: serde_json::Value,
}

/// What is stored with every event beside its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventMeta {
    /// Identity, derived from the aggregate and the cause; also the `Nats-Msg-Id`.
    pub event_id: MessageId,
    /// The id of the aggregate.
    pub id: Token,
    /// The time at which it was decided.
    pub at: Timestamp,
    /// `message_id` or `event_id` of what caused it.
    pub cause: MessageId,
    /// All deadlines that the aggregate has open after this event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<Deadline>,
    /// Names of those that are new, or due at another time than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<Token>,
    /// Names of deadlines that were open before this event and no longer are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Token>,
    /// Stream sequences of earlier events of the aggregate, oldest first: of all from the last one on that carries the state, and of
    /// the last 256 if there are more. The oldest event named here names those before it. The lock under which an event is appended
    /// proves the list complete, so an aggregate is loaded by sequence instead of by a search through the stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = EARLIER_MAX))]
    pub earlier: Vec<u64>,
    /// The snapshot of shared memory that the aggregate refers to, and so do the messages that follow from the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_snapshot: Option<Snapshot>,
    /// The state of the aggregate before this event; now and then, in aggregates that live long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<CarriedState>,
}

/// An event in its stored form.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent<E> {
    /// What is stored with every event.
    pub meta: EventMeta,
    /// Its position in the stream of events.
    pub sequence: u64,
    /// What happened.
    pub event: E,
}

/// The stored form, as it is written: the name of the event (the key `fact`) and its contents beside [`EventMeta`]'s fields.
#[derive(Serialize)]
struct StoredRef<'a, E> {
    #[serde(rename = "fact")]
    name: &'a str,
    aggregate: Aggregate,
    #[serde(flatten)]
    meta: &'a EventMeta,
    data: &'a E,
}

/// The stored form, as it is read. [`EventMeta`]'s fields are repeated, because raw JSON cannot be read beside flattened
/// fields, and a second pass for them costs as much as the first.
#[derive(Deserialize)]
struct StoredEventParts<'a> {
    #[serde(rename = "fact")]
    name: Token,
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
    #[serde(default)]
    memory_snapshot: Option<Snapshot>,
    #[serde(default)]
    state: Option<CarriedState>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Why stored bytes cannot be read as an event.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are not JSON, or do not have the form of the event.
    #[error("the stored event does not have the form of its fact")]
    Json(#[from] serde_json::Error),
    /// They are no event at all, but the broker's answer to another message, which somebody had it send here. Readers skip it.
    #[error("it is {}, and no fact", NonEvent::Acknowledgement.as_str())]
    NonEvent,
    /// An event that this build does not know, because a newer one stored it.
    #[error(
        "the fact {event:?} of a {aggregate} is not known to this build; run the version that stored it, or a newer one"
    )]
    UnknownEvent {
        /// The kind of aggregate.
        aggregate: Aggregate,
        /// The name of the event.
        event: String,
    },
}

/// The bytes of most events, so that the buffer of one rarely grows while it is written.
const USUAL_BYTES: usize = 2_048;

/// The events of one kind of aggregate. Serialised, an event is its contents alone, without its name.
pub trait AggregateEvent: Serialize + Sized + Clone + Send + Sync + 'static {
    /// The kind of aggregate.
    const AGGREGATE: Aggregate;
    /// All events, with what follows from each.
    const EVENTS: &'static [EventInfo];
    /// The schema of each event's contents, in the order of [`Self::EVENTS`].
    const SCHEMAS: &'static [MakeSchema];

    /// The name of the event.
    fn name(&self) -> &'static str;
    /// Whether the set of open deadlines may differ after it.
    fn moves_deadlines(&self) -> bool {
        Self::EVENTS
            .iter()
            .any(|info| info.moves_deadlines && info.name == self.name())
    }
    /// Reads the contents of the event called `name`.
    fn decode(name: &str, data: &RawValue) -> Result<Self, Error>;
}

/// What follows from an event, so that consumers are given no more than they need. Tests compare it with the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventInfo {
    /// The name of the event, a token of its subject.
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
            name: self.event.name(),
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
            name,
            event_id,
            id,
            at,
            cause,
            deadlines,
            opened,
            closed,
            earlier,
            memory_snapshot,
            state,
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
            memory_snapshot,
            state,
        };
        Ok(Self {
            meta,
            sequence,
            event: E::decode(name.as_str(), data)?,
        })
    }

    /// The subject that the event is stored on.
    pub fn subject(&self) -> SystemSubject {
        SystemSubject::Event {
            aggregate: E::AGGREGATE,
            id: self.meta.id.clone(),
            event: Token::fixed(self.event.name()),
        }
    }
}

impl EventMeta {
    /// Reads what is stored with every event, without reading the event itself.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, error))
    }
}

/// Why bytes could not be read as an event. Only here they are compared with answers of the broker, so that reading an event
/// costs nothing more.
fn unreadable(bytes: &[u8], error: serde_json::Error) -> Error {
    if is_acknowledgement(bytes) {
        Error::NonEvent
    } else {
        Error::Json(error)
    }
}

/// The kind of a cause. Senders choose the ids of their messages, so a message must never be taken for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A message.
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
