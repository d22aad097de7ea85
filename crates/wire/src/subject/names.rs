//! Names on the broker, beside subjects, that an agent uses: streams of messages, its durable inbox, the bucket of large payloads.

use super::{Lane, SubjectSpace};
use crate::id::{AgentId, Recipient};

/// The durable inbox of an agent on one lane: a pull consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInbox {
    /// The name of the stream.
    pub stream: String,
    /// The name of the consumer.
    pub consumer: String,
    /// The subjects that it is given.
    pub filter: String,
}

impl Lane {
    /// How the name of the stream ends that holds the messages of this lane.
    pub fn stream_suffix(self) -> &'static str {
        match self {
            Self::Normal => "MESSAGES",
            Self::Urgent => "URGENT",
        }
    }
}

impl SubjectSpace {
    /// The name of a stream: the prefix of the installation in upper case, and a word for what the stream holds.
    pub fn stream_name(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.prefix().to_ascii_uppercase())
    }

    /// The name of the stream that holds the messages of a lane.
    pub fn message_stream(&self, lane: Lane) -> String {
        self.stream_name(lane.stream_suffix())
    }

    /// The name of the bucket of payloads that are too large for a message.
    pub fn payload_bucket(&self) -> String {
        self.stream_name("PAYLOADS")
    }

    /// The durable inbox of an agent on `lane`. It holds what is addressed to the agent alone.
    pub fn agent_inbox(&self, lane: Lane, agent: &AgentId) -> AgentInbox {
        AgentInbox {
            stream: self.message_stream(lane),
            consumer: format!("agent-{agent}"),
            filter: self.inbox(lane, &Recipient::Agent(agent.clone())),
        }
    }
}
