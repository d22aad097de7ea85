//! What an audit takes: events, messages and dead letters as their streams hold them, and when it is judged.

use concord_events::Aggregate;
use concord_wire::subject::{Lane, Subject};
use concord_wire::{Dialect, Envelope, MessageId, Timestamp, Token};
use serde::{Deserialize, Serialize};

/// An event as its stream holds it.
#[derive(Debug, Clone, Copy)]
pub struct RawEvent<'a> {
    /// Its sequence in the stream.
    pub sequence: u64,
    /// The kind of aggregate that its subject names.
    pub aggregate: Aggregate,
    /// The id of the aggregate that its subject names.
    pub id: &'a Token,
    /// The name of the event that its subject names.
    pub event: &'a Token,
    /// The stored bytes.
    pub bytes: &'a [u8],
}

/// The content of a stored message.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// An envelope that was read already, and fits its subject.
    Envelope(&'a Envelope),
    /// The stored bytes.
    Bytes(&'a [u8]),
}

/// A message as the stream of its lane holds it.
#[derive(Debug, Clone, Copy)]
pub struct StoredMessage<'a> {
    /// Its sequence in the stream of its lane.
    pub sequence: u64,
    /// Its subject.
    pub subject: &'a Subject,
    /// The dialect that its header declares.
    pub declared: Option<Dialect>,
    /// Its content.
    pub content: Content<'a>,
}

/// A dead letter, with what it says about its original.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dead<'a> {
    /// The original's subject, where it follows the grammar.
    pub subject: Option<&'a Subject>,
    /// The original's lane and its sequence there, where it was a message and the letter names
    /// them.
    pub position: Option<(Lane, u64)>,
    /// The original's `message_id`, where it could be read.
    pub message_id: Option<&'a MessageId>,
}

/// Up to which sequence of each stream nothing is in flight: no such message is still to be handled, and no effect of such an event still to be
/// published. Anybody may keep something in flight; what is older than that is judged all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Of the events.
    pub events: u64,
    /// Of the messages.
    pub messages: u64,
    /// Of the urgent messages.
    pub urgent: u64,
}

impl Settled {
    /// Nothing is in flight.
    pub const ALL: Self = Self::up_to(u64::MAX);
    /// Everything may be in flight.
    pub const NONE: Self = Self::up_to(0);

    const fn up_to(sequence: u64) -> Self {
        Self {
            events: sequence,
            messages: sequence,
            urgent: sequence,
        }
    }

    /// The same of the messages of a lane.
    pub fn of_lane(&self, lane: Lane) -> u64 {
        match lane {
            Lane::Normal => self.messages,
            Lane::Urgent => self.urgent,
        }
    }
}

/// The circumstances under which an audit is judged.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// The present; the time before which everything is settled, where not all is.
    pub now: Timestamp,
    /// How long after it is due a deadline may still be open, in milliseconds.
    pub grace_ms: u64,
    /// What is settled. Only of that the audit can say that something is missing.
    pub settled: Settled,
    /// The time from which on messages are kept: effects of older events may have been deleted by
    /// age. `None` when all are kept.
    pub messages_since: Option<Timestamp>,
}

impl Ending {
    /// Judges with nothing in flight, no message deleted by age, and no grace.
    pub fn quiescent(now: Timestamp) -> Self {
        Self {
            now,
            grace_ms: 0,
            settled: Settled::ALL,
            messages_since: None,
        }
    }

    /// Judges under load: what may still be in flight is no violation.
    pub fn under_load(now: Timestamp) -> Self {
        Self {
            settled: Settled::NONE,
            ..Self::quiescent(now)
        }
    }
}
