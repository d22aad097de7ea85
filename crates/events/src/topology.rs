//! Streams and consumers as data: every stream and consumer is defined here. Services create those that are missing and report
//! those that differ.

use std::time::Duration;

use concord_wire::subject::{DEFAULT_PREFIX, Lane, SubjectSpace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod consumer;
mod permissions;

pub use consumer::{
    Channel, ConsumerDefinition, ConsumerKind, EXCHANGED, WAKING, is_second_delivery, may_wake,
};

/// The oldest version of the broker that has what Concord needs: message schedules that survive and can be cancelled.
pub const BROKER_VERSION_MIN: (u64, u64) = (2, 14);

/// The streams of an installation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// Messages at normal priority; also the audit log.
    Messages,
    /// Messages at urgent priority.
    Urgent,
    /// Events: the system of record.
    Events,
    /// Deadlines.
    Timers,
    /// What processes share.
    Memory,
    /// Dead letters: messages that could not be processed.
    Dead,
}

impl StreamKind {
    /// All streams.
    pub const ALL: [Self; 6] = [
        Self::Messages,
        Self::Urgent,
        Self::Events,
        Self::Timers,
        Self::Memory,
        Self::Dead,
    ];

    /// The streams that say what happened. The others are means: deadlines follow from events, memory keeps the latest.
    pub const EVIDENCE: [Self; 4] = [Self::Events, Self::Messages, Self::Urgent, Self::Dead];

    /// The name by which heads and bundles speak of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Urgent => "urgent",
            Self::Events => "events",
            Self::Timers => "timers",
            Self::Memory => "memory",
            Self::Dead => "dead",
        }
    }

    /// The kind of subjects the stream holds.
    fn subject_kind(self) -> &'static str {
        match self {
            Self::Messages => "msg",
            Self::Urgent => "urgent",
            Self::Events => "event",
            Self::Timers => "timer",
            Self::Memory => "memory",
            Self::Dead => "dead",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Messages => Lane::Normal.stream_suffix(),
            Self::Urgent => Lane::Urgent.stream_suffix(),
            Self::Events => "EVENTS",
            Self::Timers => "TIMERS",
            Self::Memory => "MEMORY",
            Self::Dead => "DEAD",
        }
    }

    /// One line for the generated reference.
    pub fn doc(self) -> &'static str {
        match self {
            Self::Messages => "What is said: transcript and audit log. Kept by age.",
            Self::Urgent => {
                "What is said at priority critical or system_critical, so that no backlog delays it."
            }
            Self::Events => {
                "Events: the system of record. No age limit; what is archived is deleted."
            }
            Self::Timers => "Deadlines held and delivered by the broker's scheduler.",
            Self::Memory => {
                "What the processes of a service share, such as what is left of a budget. What agents share are events."
            }
            Self::Dead => "What could not be processed, with the reason; see `concord dead`.",
        }
    }

    /// How much of the bytes that all streams may take this one may, in percent. None where it has no limit of its own: what the others
    /// leave is the reserve for events and deadlines, so that what agents write, or have refused, never stops a decision.
    pub fn percent_max(self) -> Option<u64> {
        match self {
            Self::Messages => Some(50),
            Self::Urgent | Self::Memory | Self::Dead => Some(10),
            Self::Events | Self::Timers => None,
        }
    }

    /// The stream of the messages of a lane.
    pub fn of_lane(lane: Lane) -> Self {
        match lane {
            Lane::Normal => Self::Messages,
            Lane::Urgent => Self::Urgent,
        }
    }

    /// The lane whose messages this stream holds, if it holds messages.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Self::Messages => Some(Lane::Normal),
            Self::Urgent => Some(Lane::Urgent),
            _ => None,
        }
    }
}

/// What an operator may choose about storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageChoices {
    /// Copies of each stream: 1 on a laptop, 3 in production.
    pub replicas: usize,
    /// How long messages and dead letters are kept.
    pub message_age: Duration,
    /// How many bytes all streams together may take; `None` without limit.
    pub bytes_max: Option<u64>,
}

impl Default for StorageChoices {
    fn default() -> Self {
        Self {
            replicas: 1,
            message_age: Duration::from_secs(90 * 86_400),
            bytes_max: None,
        }
    }
}

/// One stream's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamDefinition {
    /// The stream that is defined.
    pub kind: StreamKind,
    /// Its name on the broker.
    pub name: String,
    /// The subjects it holds.
    pub subjects: Vec<String>,
    /// How long messages are kept; `None` without limit.
    pub max_age: Option<Duration>,
    /// Messages kept for each subject; `None` without limit.
    pub max_messages_per_subject: Option<i64>,
    /// How many bytes it may take before it refuses; `None` without limit.
    pub bytes_max: Option<u64>,
    /// How long a `Nats-Msg-Id` is remembered.
    pub duplicate_window: Duration,
    /// Whether the broker's scheduler works on it.
    pub schedules: bool,
    /// How many copies are kept.
    pub replicas: usize,
}

/// The names and definitions of one installation.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Its subjects.
    pub subjects: SubjectSpace,
    choices: StorageChoices,
}

impl Default for Layout {
    fn default() -> Self {
        Self::new(
            &concord_wire::Token::fixed(DEFAULT_PREFIX),
            StorageChoices::default(),
        )
    }
}

impl Layout {
    /// The layout under `prefix`; stream names are its upper-case form.
    pub fn new(prefix: &concord_wire::Token, choices: StorageChoices) -> Self {
        Self {
            subjects: SubjectSpace::new(prefix),
            choices,
        }
    }

    /// A stream's name on the broker.
    pub fn stream_name(&self, kind: StreamKind) -> String {
        self.subjects.stream_name(kind.suffix())
    }

    /// The bucket of payloads that are too large for a message.
    pub fn payload_bucket(&self) -> String {
        self.subjects.payload_bucket()
    }

    /// The stream that holds this bucket.
    pub fn payload_stream(&self) -> String {
        format!("OBJ_{}", self.payload_bucket())
    }

    /// The bucket of archived cases, where they are kept in the broker's object store.
    pub fn archive_bucket(&self) -> String {
        self.subjects.stream_name("ARCHIVE")
    }

    /// The stream that holds messages on this subject; none where no stream does.
    pub fn stream_of(&self, subject: &str) -> Option<StreamKind> {
        StreamKind::ALL.into_iter().find(|kind| {
            let all = self.subjects.all(kind.subject_kind());
            subject.starts_with(all.trim_end_matches('>'))
        })
    }

    /// A stream's definition.
    pub fn stream(&self, kind: StreamKind) -> StreamDefinition {
        let by_age = matches!(
            kind,
            StreamKind::Messages | StreamKind::Urgent | StreamKind::Dead
        );
        StreamDefinition {
            kind,
            name: self.stream_name(kind),
            subjects: vec![self.subjects.all(kind.subject_kind())],
            max_age: by_age.then_some(self.choices.message_age),
            // One message for each subject, so that arming a deadline again replaces it.
            max_messages_per_subject: match kind {
                StreamKind::Timers => Some(1),
                StreamKind::Memory => Some(64),
                _ => None,
            },
            bytes_max: kind.percent_max().and_then(|percent| {
                let all = self.choices.bytes_max?;
                Some(all / 100 * percent)
            }),
            duplicate_window: Duration::from_secs(120),
            schedules: kind == StreamKind::Timers,
            replicas: self.choices.replicas,
        }
    }
}

/// The name of the consumer that reads messages past the backlog of another.
pub fn bypass(consumer: &str) -> String {
    format!("{consumer}-bypass")
}
