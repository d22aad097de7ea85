//! Names on the broker, beside subjects, that an agent uses: streams of messages, its durable inbox, the bucket of large payloads.

use super::{Lane, Service, SubjectSpace};

/// The name under which the installation's own operator acts, who asks under no name.
pub const OPERATOR: &str = "operator";

/// Whose name this is, where it is neither an agent's nor a person's to have: whoever speaks under it is believed to be that one.
pub fn whose_name(name: &str) -> Option<&'static str> {
    match name {
        OPERATOR => Some("the operator of the installation"),
        _ => Service::parse(name).ok().map(|_| "a service"),
    }
}
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

/// The durable inbox of an agent on one lane that operators have made for it: a consumer that the broker pushes to one subject, which
/// only the agent hears. So the agent needs no right to ask JetStream for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredInbox {
    /// The name of the stream.
    pub stream: String,
    /// The name of the consumer.
    pub consumer: String,
    /// The subjects that it is given.
    pub filter: String,
    /// Where the agent hears what the consumer is given.
    pub deliver_to: String,
    /// The queue group in which the processes of an agent share it.
    pub group: String,
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

    /// The durable inbox of an agent for alerts on `lane`, beside the one for all else: what the coordinator tells everybody, which no
    /// backlog of the agent delays.
    pub fn agent_alerts(&self, lane: Lane, agent: &AgentId) -> AgentInbox {
        AgentInbox {
            stream: self.message_stream(lane),
            consumer: format!("alerts-{agent}"),
            filter: self.alerts(lane),
        }
    }

    /// Everything that the coordinator alerts everybody of on `lane`.
    pub fn alerts(&self, lane: Lane) -> String {
        let (from, to) = (Service::Coordinator, Recipient::All);
        format!("{}{}.*.{from}.{to}.alert", self.root, lane.as_str())
    }

    /// The durable inboxes of an agent on `lane` that operators have made for it: for what is said to the agent, and for alerts.
    pub fn registered_inboxes(&self, lane: Lane, agent: &AgentId) -> [RegisteredInbox; 2] {
        let own = self.registered_inbox(lane, agent);
        let alerts = RegisteredInbox {
            consumer: format!("alerted-{agent}"),
            filter: self.alerts(lane),
            deliver_to: format!("{}.alerts", own.deliver_to),
            ..own.clone()
        };
        [own, alerts]
    }

    /// The durable inbox of an agent on `lane` that operators have made for it.
    pub fn registered_inbox(&self, lane: Lane, agent: &AgentId) -> RegisteredInbox {
        let AgentInbox { stream, filter, .. } = self.agent_inbox(lane, agent);
        RegisteredInbox {
            stream,
            consumer: format!("inbox-{agent}"),
            filter,
            deliver_to: format!(
                "{}.{}.{}",
                Self::replies(agent),
                self.prefix(),
                lane.as_str()
            ),
            group: agent.to_string(),
        }
    }
}
