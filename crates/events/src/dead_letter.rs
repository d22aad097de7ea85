//! Dead letters: messages that could not be processed, with the reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use concord_wire::error_code::ErrorCode;
use concord_wire::id::Token;
use concord_wire::subject::Service;
use concord_wire::timestamp::Timestamp;

use crate::non_event::COPIED_FROM;

/// The reason why a message is a dead letter; the last token of its subject.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The message is malformed or cannot be used.
    Invalid,
    /// The sender may not do this.
    Unauthorized,
    /// A limit is reached.
    Capacity,
    /// It failed again and again, or came too late.
    Exhausted,
    /// A notification that its channel refused for good: there is no such mailbox, or the host is not allowed.
    Undeliverable,
}

impl DeadReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Invalid,
        Self::Unauthorized,
        Self::Capacity,
        Self::Exhausted,
        Self::Undeliverable,
    ];

    /// The reason as a subject token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthorized => "unauthorized",
            Self::Capacity => "capacity",
            Self::Exhausted => "exhausted",
            Self::Undeliverable => "undeliverable",
        }
    }

    /// The reason as a subject token.
    pub fn token(self) -> Token {
        Token::fixed(self.as_str())
    }
}

impl From<ErrorCode> for DeadReason {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Unauthorized => Self::Unauthorized,
            ErrorCode::CapacityExceeded => Self::Capacity,
            ErrorCode::InternalError | ErrorCode::Timeout => Self::Exhausted,
            ErrorCode::InvalidRequest | ErrorCode::AgentUnavailable => Self::Invalid,
        }
    }
}

/// Headers of a message on `dead`; its body is the original, byte for byte, or empty where the original is where these say.
pub mod header {
    concord_wire::headers! {
        /// The original's subject.
        SUBJECT = "Concord-Dead-Subject";
        /// The original's stream.
        STREAM = "Concord-Dead-Stream";
        /// The original's sequence in its stream.
        SEQUENCE = "Concord-Dead-Sequence";
        /// The consumer that gave up.
        CONSUMER = "Concord-Dead-Consumer";
        /// The wire code.
        CODE = "Concord-Dead-Code";
        /// JSON pointer to the offending place.
        POINTER = "Concord-Dead-Pointer";
        /// What was wrong, as a sentence.
        ERROR = "Concord-Dead-Error";
        /// The size of the original in bytes; on letters that do not have it.
        BYTES = "Concord-Dead-Bytes";
        /// How often it was tried.
        DELIVERIES = "Concord-Dead-Deliveries";
        /// The time at which it was given up.
        AT = "Concord-Dead-At";
        /// When the original was sent again; on letters that were.
        RETRIED = "Concord-Dead-Retried";
        /// On an original that is sent again: the sequence of its dead letter.
        RETRY_OF = "Concord-Dead-Retry-Of";
    }
}

/// Whether a message on `dead` is a letter, by the headers that it has. Agents can have the broker store there what it
/// answers them: an acknowledgement, which has no headers, or a copy of a message of theirs.
pub fn is_letter(has: impl Fn(&str) -> bool) -> bool {
    has(header::SUBJECT) && !has(COPIED_FROM)
}

/// A dead message as the command line shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// Its sequence in the stream of the dead.
    pub sequence: u64,
    /// The service that gave up.
    pub service: Service,
    /// The consumer in which it waited; empty where its letter names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub consumer: String,
    /// The reason why it could not be processed: the token of its subject.
    pub reason: String,
    /// The original's subject.
    pub subject: String,
    /// The original's sequence in its stream.
    pub original_sequence: Option<u64>,
    /// The wire code.
    pub code: String,
    /// JSON pointer to the offending place.
    pub pointer: String,
    /// What was wrong, as a sentence.
    pub error: String,
    /// The time at which it was given up.
    pub at: Option<Timestamp>,
    /// The size of the original in bytes.
    pub bytes: usize,
    /// The time at which the original was sent again, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Timestamp>,
}
