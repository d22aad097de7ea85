//! The error of a broker that did not do what it was asked.

use std::fmt;

/// What the broker was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Append an event under the lock.
    StoreEvent,
    /// Read one stored event.
    ReadEvent,
    /// Read the last event of an aggregate.
    ReadLastEvent,
    /// List the aggregates of a kind.
    ListAggregates,
    /// Read a message that stands between events and is none.
    ReadAmongEvents,
    /// Follow the events of agents as they are stored.
    FollowAgents,
    /// Store a message of a service.
    StoreMessage,
    /// Read one stored message.
    ReadMessage,
    /// Find a message by its subject.
    FindMessage,
    /// Deliver messages as they are published.
    Subscribe,
    /// Fetch a payload from the object store.
    FetchPayload,
    /// Keep a dead letter.
    StoreDeadLetter,
    /// Read the value that replicas share.
    ReadSharedValue,
    /// Replace the value that replicas share.
    StoreSharedValue,
    /// Arm or cancel a deadline in the broker's scheduler.
    ScheduleDeadline,
    /// List deadlines that are overdue.
    ListDeadlines,
    /// Give a handle on a stream.
    OpenStream,
    /// Say what the account stores and may store.
    DescribeAccount,
    /// Describe a stream.
    DescribeStream,
    /// Keep the streams of one installation from another.
    ShareStream,
    /// Create a stream.
    CreateStream,
    /// Change a stream.
    ChangeStream,
    /// Describe the object store of payloads.
    DescribePayloadStore,
    /// Create a consumer.
    CreateConsumer,
    /// Remove a consumer.
    RemoveConsumer,
    /// Describe a consumer.
    DescribeConsumer,
    /// Remove messages from a stream.
    PurgeStream,
    /// Read what is archived, which the broker's streams hold no longer.
    ReadArchived,
}

impl Operation {
    /// The operation as it stands in "the broker did not ...".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StoreEvent => "store an event",
            Self::ReadEvent => "give an event",
            Self::ReadLastEvent => "give the last event",
            Self::ListAggregates => "list the aggregates of a kind",
            Self::ReadAmongEvents => "give a message among events",
            Self::FollowAgents => "give the events of agents",
            Self::StoreMessage => "store a message",
            Self::ReadMessage => "give a message",
            Self::FindMessage => "look a message up",
            Self::Subscribe => "let messages be heard",
            Self::FetchPayload => "give a payload",
            Self::StoreDeadLetter => "store a dead letter",
            Self::ReadSharedValue => "give a shared value",
            Self::StoreSharedValue => "store a shared value",
            Self::ScheduleDeadline => "schedule a deadline",
            Self::ListDeadlines => "list deadlines",
            Self::OpenStream => "give a handle on a stream",
            Self::DescribeAccount => "say what the account stores",
            Self::DescribeStream => "describe a stream",
            Self::ShareStream => "have a stream for this installation",
            Self::CreateStream => "create a stream",
            Self::ChangeStream => "change a stream",
            Self::DescribePayloadStore => "describe the object store of payloads",
            Self::CreateConsumer => "create a consumer",
            Self::RemoveConsumer => "remove a consumer",
            Self::DescribeConsumer => "describe a consumer",
            Self::PurgeStream => "remove messages from a stream",
            Self::ReadArchived => "give a message, and neither did the archive",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The broker could not be reached, did not answer or said no. What it was asked to do may have happened.
#[derive(Debug, thiserror::Error)]
#[error("the broker did not {operation}")]
pub struct Unavailable {
    /// The operation that was asked for.
    pub operation: Operation,
    /// Why it failed; the client library has an error type of its own for each request.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl Operation {
    /// The error of a broker that did not do this.
    pub fn failed(
        self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Unavailable {
        Unavailable {
            operation: self,
            source: source.into(),
        }
    }
}
