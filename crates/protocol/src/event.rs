//! The facts that services store: the system of record.
//!
//! One aggregate's facts are an enum; [`Record`] is the form in which one of them is stored. A record also
//! carries the complete set of deadlines that its aggregate has open after it, so that whoever keeps time
//! needs no other source.

mod agent;
mod case;
mod deadline;
mod debate;
mod detection;
mod ladder;
mod outcome;
mod precedent;
mod queue;
mod record;
mod request;
mod wake;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use agent::{AgentDeregistered, AgentEvent, AgentRegistered, AgentStatusChanged, CardChange};
pub use case::{
    CaseCancelled, CaseEvent, CaseOpened, Challenged, ConflictsReceived, DebateAsked,
    DebateSettled, Decided, FindingRecorded, FindingsClosed, GatePassed, GateReviewed,
    ReceivedFinding, SetAsideFinding,
};
pub use deadline::{DeadlineElapsed, DeadlineEvent, FiredBy};
pub use debate::{
    AnswerSetAside, Answered, CloseReason, DebateEvent, DebateOpened, DebateResolved,
    ReceivedAnswer, RoundClosed,
};
pub use detection::{Detected, DetectionEvent};
pub use ladder::{
    Acknowledged, AwaitsGate, Briefed, ChallengerAsked, Clarified, DeadlineControl, DeadlinesMoved,
    DebateAssigned, DiscussionEnded, Escalated, EscalationReason, EvidenceGiven, FellBack, Heard,
    MediatorAsked, OpinionGiven, QueueEntry, Reminded, RulingRefusal, RulingSetAside, Unassigned,
    names,
};
pub use outcome::{OutcomeKnown, ProvedParty};
pub use precedent::{PrecedentEvent, PrecedentRecorded};
pub use queue::{
    Assigned, Enqueued, ExpertLeft, ExpertRegistered, Overflowed, QueueEvent, Reassigned,
    ReleaseReason, Released,
};
pub use record::{Observed, RecordEvent};
pub use request::{
    AnswerForm, HeardAnswer, RequestAcknowledged, RequestAnswered, RequestAnsweredLate,
    RequestEvent, RequestFailed, RequestOpened,
};

pub use wake::{LoopBroken, Remembered, WakeDecided, WakeEvent, WakeOutcome, Weighed};

use crate::foreign::{Foreign, is_acknowledgement};
use crate::id::{MessageId, Token};
use crate::subject::{Aggregate, Subject};
use crate::timestamp::Timestamp;

/// Most predecessors that a fact names. The oldest of them names those before it, and so on to the first; see
/// `docs/adr/0014`.
pub const EARLIER_MAX: usize = 256;

/// A point in time that an aggregate waits for.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Deadline {
    /// Its name inside the aggregate.
    pub name: Token,
    /// When it is due.
    pub due: Timestamp,
}

/// What is known of a fact besides what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordMeta {
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
pub struct Record<E> {
    /// About the fact.
    pub meta: RecordMeta,
    /// Its position in the stream of events.
    pub sequence: u64,
    /// What happened.
    pub event: E,
}

/// The stored form, as it is written: the fact's name and contents beside [`RecordMeta`]'s fields.
#[derive(Serialize)]
struct StoredRef<'a, E> {
    fact: &'a str,
    aggregate: Aggregate,
    #[serde(flatten)]
    meta: &'a RecordMeta,
    data: &'a E,
}

/// The stored form, as it is read. [`RecordMeta`]'s fields are repeated, because raw JSON cannot be read beside flattened
/// fields, and a second pass for them costs as much as the first.
#[derive(Deserialize)]
struct StoredFact<'a> {
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
pub trait Facts: Serialize + Sized + Clone + Send + Sync + 'static {
    /// Which kind.
    const AGGREGATE: Aggregate;
    /// All facts with what follows from them.
    const FACTS: &'static [FactInfo];

    /// Which fact this is.
    fn fact(&self) -> &'static str;
    /// Whether the set of open deadlines may differ after it.
    fn moves_deadlines(&self) -> bool {
        Self::FACTS
            .iter()
            .any(|info| info.moves_deadlines && info.name == self.fact())
    }
    /// Reads the contents of `fact`.
    fn decode(fact: &str, data: &RawValue) -> Result<Self, Error>;
}

/// What follows from a fact, so that consumers are given no more than they need. Tests hold it against the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactInfo {
    /// The fact's token.
    pub name: &'static str,
    /// Messages are published because of it.
    pub has_effects: bool,
    /// The set of open deadlines may differ from before.
    pub moves_deadlines: bool,
    /// One line for the generated reference.
    pub doc: &'static str,
}

/// Declares an aggregate's facts once: enum, names, encoding and decoding.
macro_rules! facts {
    (
        $(#[$doc:meta])* $name:ident of $aggregate:expr;
        $( $variant:ident($data:ty) = $fact:literal, effects: $effects:literal, deadlines: $deadlines:literal, $line:literal; )+
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant)] // Facts are made one at a time and stored at once.
        pub enum $name {
            $( #[doc = $line] $variant($data), )+
        }

        impl crate::event::Facts for $name {
            const AGGREGATE: crate::subject::Aggregate = $aggregate;
            const FACTS: &'static [crate::event::FactInfo] = &[$( crate::event::FactInfo {
                name: $fact, has_effects: $effects, moves_deadlines: $deadlines, doc: $line,
            } ),+];

            fn fact(&self) -> &'static str {
                match self { $( Self::$variant(_) => $fact, )+ }
            }

            fn decode(fact: &str, data: &serde_json::value::RawValue) -> Result<Self, crate::event::Error> {
                match fact {
                    $( $fact => Ok(Self::$variant(serde_json::from_str(data.get())?)), )+
                    other => Err(crate::event::Error::UnknownFact {
                        aggregate: $aggregate, fact: other.to_owned(),
                    }),
                }
            }
        }

        impl $name {
            /// The schema of each fact's contents, in the order of [`crate::event::Facts::FACTS`].
            pub(crate) const SCHEMAS: &'static [crate::schema::Make] = &[$(crate::schema::make::<$data>),+];
        }
    };
}
pub(crate) use facts;

impl<E: Facts> Record<E> {
    /// The bytes to store.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let stored = StoredRef {
            fact: self.event.fact(),
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
        let StoredFact {
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
        let meta = RecordMeta {
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
    pub fn subject(&self) -> Subject {
        Subject::Event {
            aggregate: E::AGGREGATE,
            id: self.meta.id.clone(),
            fact: Token::trusted(self.event.fact()),
        }
    }
}

impl RecordMeta {
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
    /// A fact of another aggregate.
    Fact,
}

/// The identity of the one event that `cause` can bring about in an aggregate.
///
/// A step appends at most one event, so aggregate and cause identify it. An append that is tried again, by this
/// process or another, therefore has the same `Nats-Msg-Id` and is stored once.
pub fn event_id(aggregate: Aggregate, id: &Token, origin: Origin, cause: &MessageId) -> MessageId {
    let origin = match origin {
        Origin::Message => "message",
        Origin::Fact => "fact",
    };
    let name = [aggregate.as_str(), id.as_str(), origin, cause.as_str()].join("/");
    let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).hyphenated();
    MessageId::trusted(&*id.encode_lower(&mut uuid::Uuid::encode_buffer()))
}

/// Whether the open deadlines are the same after a fact as before it; not so of one that this build does not know.
pub fn leaves_deadlines(aggregate: Aggregate, fact: &Token) -> bool {
    let leaves = |facts: &[FactInfo]| {
        facts
            .iter()
            .any(|info| info.name == fact.as_str() && !info.moves_deadlines)
    };
    match aggregate {
        Aggregate::Case => leaves(CaseEvent::FACTS),
        Aggregate::Detection => leaves(DetectionEvent::FACTS),
        Aggregate::Debate => leaves(DebateEvent::FACTS),
        Aggregate::Deadline => leaves(DeadlineEvent::FACTS),
        Aggregate::Record => leaves(RecordEvent::FACTS),
        Aggregate::Precedent => leaves(PrecedentEvent::FACTS),
        Aggregate::Queue => leaves(QueueEvent::FACTS),
        Aggregate::Agent => leaves(AgentEvent::FACTS),
        Aggregate::Request => leaves(RequestEvent::FACTS),
        Aggregate::Wake => leaves(WakeEvent::FACTS),
    }
}

/// The names of the facts of one kind of aggregate that this build knows.
pub fn fact_names(aggregate: Aggregate) -> impl Iterator<Item = &'static str> {
    all_facts()
        .into_iter()
        .filter(move |(of, _)| *of == aggregate)
        .map(|(_, info)| info.name)
}

/// All facts of all aggregates, for definitions of consumers and the generated reference.
pub fn all_facts() -> Vec<(Aggregate, FactInfo)> {
    fn of<E: Facts>(out: &mut Vec<(Aggregate, FactInfo)>) {
        out.extend(E::FACTS.iter().map(|info| (E::AGGREGATE, *info)));
    }
    let mut out = Vec::new();
    of::<CaseEvent>(&mut out);
    of::<DetectionEvent>(&mut out);
    of::<DebateEvent>(&mut out);
    of::<DeadlineEvent>(&mut out);
    of::<RecordEvent>(&mut out);
    of::<PrecedentEvent>(&mut out);
    of::<QueueEvent>(&mut out);
    of::<AgentEvent>(&mut out);
    of::<RequestEvent>(&mut out);
    of::<WakeEvent>(&mut out);
    out
}
