//! The one envelope of all messages.

mod check;
mod in_words;
mod message_type;
mod no_lists;
mod rounded;
mod services;
mod syntax;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::extensions::{Extensions, keeps_unknown};
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, MessageId, Recipient};
use crate::payload::{Snapshot, result_of};
use crate::subject::{Lane, Subject};
use crate::timestamp::Timestamp;

pub use check::{check_confidence, from_json};
pub(crate) use check::{check_size, differs, impostor, not_an_object, value_from_json};
pub use message_type::MessageType;
pub(crate) use rounded::Rounded;

/// The largest envelope, in bytes: the specification's payload limit. Larger payloads are sent by reference.
pub const ENVELOPE_BYTES_MAX: usize = 1_048_576;
/// The longest name of a conversation or of an answered message.
pub const REFERENCE_BYTES_MAX: usize = 256;
/// The major version of the envelope that this build reads and writes.
pub const VERSION_MAJOR: u64 = 1;

/// How urgent a message is. From `critical` on it travels on the urgent lane.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Can wait.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before normal work.
    High,
    /// Urgent lane.
    Critical,
    /// Urgent lane, for the installation itself.
    SystemCritical,
}

impl Priority {
    /// The priority as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
            Self::SystemCritical => "system_critical",
        }
    }

    /// The lane that this priority travels on.
    pub fn lane(self) -> Lane {
        if self >= Self::Critical {
            Lane::Urgent
        } else {
            Lane::Normal
        }
    }
}

/// Data about a message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Metadata {
    /// How sure the sender is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// How long the sender worked on it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing_time_ms: Option<u64>,
    /// Version of the envelope, `major.minor`; 1.0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^1(\.|$)"))]
    pub version: Option<String>,
    /// The snapshot of shared memory that the sender refers to. Messages of a debate that has one carry it, and one that
    /// refers to another is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_snapshot: Option<Snapshot>,
    /// Whatever else it says, kept as it was written.
    #[serde(flatten)]
    #[schemars(skip)]
    pub extensions: Extensions,
}

keeps_unknown!(Metadata {
    confidence: default,
    processing_time_ms: rounded,
    memory_snapshot: default,
    version: default
});

impl Metadata {
    /// Checks that this version of the envelope is spoken here.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        let version = self.version.as_deref().unwrap_or("1.0");
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u64>().ok());
        if major == Some(VERSION_MAJOR) {
            return Ok(());
        }
        Err(Fault::invalid(
            "/metadata/version",
            format!("Version {version:?} of the envelope is not spoken here."),
            format!("Send version {VERSION_MAJOR}.x, for example \"1.0\"."),
        ))
    }
}

/// The envelope. Unknown fields are ignored and kept.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Envelope {
    /// Identity of the message, unique in the installation.
    pub message_id: MessageId,
    /// The time at which it was sent.
    pub timestamp: Timestamp,
    /// The sender; must equal the sender in the subject.
    pub from_agent: AgentId,
    /// The recipient; must equal the recipient in the subject.
    pub to_agent: Recipient,
    /// The message type; must equal the type in the subject.
    pub message_type: MessageType,
    /// The case, if in one; must equal the subject's case, which it is where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// Ties a response to its request, and an answer to its debate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REFERENCE_BYTES_MAX))]
    pub correlation_id: Option<String>,
    /// `message_id` of the message this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REFERENCE_BYTES_MAX))]
    pub reply_to: Option<String>,
    /// Discussion round; 0 or absent outside a discussion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The priority.
    #[serde(default)]
    pub priority: Priority,
    /// Whether the sender waits for an answer.
    #[serde(default)]
    pub requires_response: bool,
    /// The time until which an answer is of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The contents; their schema follows from `message_type`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub payload: Box<RawValue>,
    /// Data about the message.
    #[serde(default)]
    pub metadata: Metadata,
    /// Unknown fields, kept as they were written.
    #[serde(flatten)]
    #[schemars(skip)]
    pub extensions: Extensions,
}

keeps_unknown!(Envelope {
    message_id: required,
    timestamp: required,
    from_agent: required,
    to_agent: required,
    message_type: required,
    case_id: default,
    correlation_id: default,
    reply_to: default,
    round: default,
    priority: default,
    requires_response: default,
    deadline: default,
    payload: required,
    metadata: default,
});

impl Envelope {
    /// Reads an envelope from the bytes of a message and checks it against the subject it came on, whose case it belongs to also where it
    /// names none.
    ///
    /// The fault names the place as a JSON pointer.
    pub fn decode(bytes: &[u8], subject: &Subject) -> Result<Self, Fault> {
        check_size(bytes)?;
        let mut envelope: Self = from_json(bytes, "")?;
        envelope.check_against(subject)?;
        envelope.check_values()?;
        if let Subject::Message { case, .. } = subject {
            envelope.case_id = envelope.case_id.or_else(|| case.clone());
        }
        Ok(envelope)
    }

    fn check_against(&self, subject: &Subject) -> Result<(), Fault> {
        let Subject::Message {
            case,
            from,
            to,
            kind,
            ..
        } = subject
        else {
            return Err(Fault::invalid(
                "",
                "The subject is not that of a message.",
                "Publish on the msg subjects.",
            ));
        };
        let differs = |pointer: &str, body: &str, token: &str| Err(differs(pointer, body, token));
        if self.from_agent != *from {
            return Err(impostor("/from_agent", self.from_agent.as_str(), from));
        }
        if self.to_agent != *to {
            return differs("/to_agent", self.to_agent.as_str(), to.as_str());
        }
        if self.message_type.as_str() != kind.as_str() {
            return differs("/message_type", self.message_type.as_str(), kind.as_str());
        }
        match (&self.case_id, case) {
            (Some(body), Some(token)) if body != token => {
                differs("/case_id", body.as_str(), token.as_str())
            }
            (Some(body), None) => differs("/case_id", body.as_str(), "_"),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_values(&self) -> Result<(), Fault> {
        if !self.payload.get().starts_with('{') {
            return Err(not_an_object("/payload"));
        }
        if let Some(confidence) = self.metadata.confidence {
            check_confidence("/metadata/confidence", confidence)?;
        }
        self.metadata.check_version()?;
        for (pointer, named) in [
            ("/correlation_id", &self.correlation_id),
            ("/reply_to", &self.reply_to),
        ] {
            // Services keep these ids in memory, so their length is limited.
            if let Some(bytes) = named
                .as_ref()
                .map(String::len)
                .filter(|bytes| *bytes > REFERENCE_BYTES_MAX)
            {
                return Err(Fault::invalid(
                    pointer,
                    format!("It has {bytes} bytes, more than {REFERENCE_BYTES_MAX}."),
                    "Name a conversation, or the message that is answered, by its id.",
                ));
            }
        }
        Ok(())
    }

    /// Completes a message of a dialect without id or time by the sequence and time at which it was stored.
    /// [`Timestamp::default`] as the time leaves it missing.
    #[must_use]
    pub fn completed(self, sequence: u64, stored_at: Timestamp) -> Self {
        let is_missing = self.timestamp == Timestamp::default();
        let timestamp = if is_missing {
            stored_at
        } else {
            self.timestamp
        };
        Self {
            message_id: self.message_id.at_sequence(sequence),
            timestamp,
            ..self
        }
    }

    /// Reads the payload as `T`; the fault's pointer begins with `/payload`.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        from_json(self.payload.get().as_bytes(), "/payload")
    }

    /// What `read` makes of what is answered: of the payload, or where that has the form of a response, of its `result`. `read` says the
    /// places of faults as if it stood in the payload.
    pub fn answered<T>(
        &self,
        read: impl FnOnce(&RawValue) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(result) = result_of(&self.payload) else {
            return read(&self.payload);
        };
        read(&result).map_err(|fault| Fault {
            pointer: fault.pointer.replacen("/payload", "/payload/result", 1),
            ..fault
        })
    }

    /// The same message with what is answered as its payload.
    #[must_use]
    pub fn without_response_form(self) -> Self {
        match result_of(&self.payload) {
            Some(payload) => Self { payload, ..self },
            None => self,
        }
    }

    /// The answer of `by` to this message: to its sender, with `reply_to`, in the same case and conversation.
    ///
    /// Its id follows from this message and `by`, so that an answer that is sent twice is one message. The id of a reply beside
    /// the answer also contains its type.
    pub fn reply(
        &self,
        by: &AgentId,
        at: Timestamp,
        message_type: MessageType,
        payload: Box<RawValue>,
    ) -> Self {
        let id = MessageId::of_reply(&self.message_id, by, &message_type);
        let to = Recipient::Agent(self.from_agent.clone());
        Self {
            case_id: self.case_id.clone(),
            correlation_id: self
                .correlation_id
                .clone()
                .or_else(|| Some(self.message_id.to_string())),
            reply_to: Some(self.message_id.to_string()),
            round: self.round,
            ..Self::new(id, at, by.clone(), to, message_type, payload)
        }
    }

    /// A message with the required fields only: in no case, in reply to nothing, at normal priority.
    pub fn new(
        message_id: MessageId,
        timestamp: Timestamp,
        from_agent: AgentId,
        to_agent: Recipient,
        message_type: MessageType,
        payload: Box<RawValue>,
    ) -> Self {
        Self {
            message_id,
            timestamp,
            from_agent,
            to_agent,
            message_type,
            case_id: None,
            correlation_id: None,
            reply_to: None,
            round: None,
            priority: Priority::Normal,
            requires_response: false,
            deadline: None,
            payload,
            metadata: Metadata {
                version: Some("1.0".into()),
                ..Metadata::default()
            },
            extensions: Extensions::default(),
        }
    }

    /// The subject that this envelope belongs on.
    pub fn subject(&self) -> Subject {
        Subject::Message {
            lane: self.priority.lane(),
            case: self.case_id.clone(),
            from: self.from_agent.clone(),
            to: self.to_agent.clone(),
            kind: self.message_type.token(),
        }
    }
}

#[cfg(test)]
mod tests;
