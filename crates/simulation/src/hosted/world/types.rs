//! What is asked, said, called and recorded in the world of one hosted agent.

use concord_domain::resilience::breaker::End;
use concord_runtime::codec::message_lookup::{SearchStart, Stored as StoredMessage};
use concord_runtime::delivery::Delivery;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, ErrorCode, Timestamp};

use crate::executor::Incarnation;
use crate::hosted::setup::{Mood, Outcome};

/// Where the adapter waits.
pub(crate) type Cell = crate::oneshot::Cell<Reply>;

/// What the adapter waits for.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// The broker has done what it was asked.
    Done,
    /// A message is stored, or another was stored under its id before.
    Published { first: bool },
    /// The message that was looked for, if there is one.
    Found(Option<Box<StoredMessage>>),
    /// The endpoint's answer to a call, and how long it asks to be left alone.
    Called(Outcome, Option<u64>),
}

/// What is asked of the broker.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// Store a message, unless one is stored under its id.
    Publish(Box<Publication>),
    /// The first message of a lane from there on whose subject matches the filter.
    NextMessage {
        lane: Lane,
        filter: String,
        start: SearchStart,
    },
    /// A delivery is done with.
    Acknowledge { sequence: usize },
    /// A delivery is to be made again.
    PutBack { sequence: usize, wait_ms: u64 },
}

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Action {
    /// Somebody asks the agent.
    Ask,
    /// The broker looks for a process that takes a message.
    Offer { sequence: usize },
    /// A message reaches a process.
    Deliver {
        sequence: usize,
        incarnation: Incarnation,
    },
    /// The broker has heard nothing of a delivery for too long.
    Lapse { sequence: usize, lease: u32 },
    /// The process says that it still works on a delivery.
    Progress { handling: u64 },
    /// A request reaches the broker.
    Arrive(Request, Cell),
    /// An answer reaches who asked.
    Answer(Cell, Reply),
    /// Who asked waits no longer.
    GiveUp(Cell),
    /// A call reaches the endpoint.
    Reach { call: u64, cell: Cell },
    /// The coordinator ends a request whose time is over.
    TimeOver { sequence: usize },
    /// The endpoint behaves in another way from here on.
    Mood,
    /// A process is killed.
    Crash(Incarnation),
    /// A replica is started again.
    Restart { replica: usize },
    /// A second has passed: the broker may go away for a while.
    Second,
    /// Nothing goes wrong from here on.
    Calm,
    /// Nobody asks any more.
    Close,
}

/// A message to the agent.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) envelope: Envelope,
    /// Where it is stored in the stream of its lane, and when.
    pub(crate) sequence: u64,
    pub(crate) stored_at: Timestamp,
    /// When the coordinator ends it; none of a question of a service, which has a deadline of its own for that.
    pub(crate) ended_at: Option<u64>,
    pub(super) deliveries: u64,
    /// Which delivery's silence counts; none when it is acknowledged.
    pub(super) lease: Option<u32>,
}

/// A message as it is given to a process.
pub(crate) struct Assignment {
    /// Which of all deliveries.
    pub(crate) handling: u64,
    /// Which of the messages to the agent.
    pub(crate) sequence: usize,
    pub(crate) delivery: Delivery,
}

/// A delivery that is worked on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled {
    pub(super) incarnation: Incarnation,
    pub(super) sequence: usize,
    pub(super) began: u64,
}

/// A message of the adapter, as the broker keeps it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) lane: Lane,
    pub(super) subject: String,
    pub(super) message: StoredMessage,
}

/// A message of the adapter on its way to the broker.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(super) envelope: Envelope,
    /// Which message it answers, and how.
    pub(super) said: Said,
}

/// Why an asker is told an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The breaker is open.
    Broken,
    /// Too many wait.
    Full,
    /// Its time was over before the agent was asked.
    Late,
    /// The call had no answer that could be used.
    Called(Outcome),
    /// The coordinator has ended it.
    Coordinator,
    /// The words of the error are none that are known here.
    Unknown,
}

/// What an asker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) sequence: usize,
    /// None of a response.
    pub(crate) error: Option<(ErrorCode, Cause)>,
    /// When it was sent.
    pub(crate) sent: u64,
    /// When it was stored.
    pub(crate) at: u64,
}

/// One call of the endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) sequence: usize,
    pub(crate) handling: u64,
    /// The first asking, or that for a better reply.
    pub(crate) part: u8,
    /// How the endpoint took it; none when it did not reach it.
    pub(crate) taken: Option<Mood>,
    /// What came of it; none while it is under way.
    pub(crate) outcome: Option<Outcome>,
    /// Who made it waits no longer for a connection.
    pub(super) abandoned: bool,
}

/// What a process did or saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// A call was sent.
    Sent { call: u64 },
    /// A call ended.
    Ended { call: u64, end: End },
    /// The breaker let no call pass.
    Refused,
    /// How many are worked on and wait.
    Load { working: usize, waiting: usize },
    /// One found no room, or lost its place to an urgent one.
    Full,
    /// It was killed.
    Killed,
}

/// An entry of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) incarnation: Incarnation,
    pub(crate) what: What,
}
