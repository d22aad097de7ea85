//! Every subject of Concord is built and parsed here; nothing else spells one.
//!
//! The grammar is that of `docs/subjects.md`, which is generated from [`GRAMMAR`].

mod filters;
mod permissions;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use permissions::Permissions;

use crate::id::{self, AgentId, CaseId, Recipient, Token};

/// Version of the subject grammar; the second token of every subject.
pub const VERSION: &str = "v1";
/// Prefix when none is configured.
pub const DEFAULT_PREFIX: &str = "concord";
/// The case token of a message outside any case.
const NO_CASE: &str = "_";

/// Form and purpose of every subject, for the generated reference.
pub const GRAMMAR: [(&str, &str); 9] = [
    (
        "msg.<case>.<from>.<to>.<type>",
        "what agents, people and services say",
    ),
    (
        "urgent.<case>.<from>.<to>.<type>",
        "the same at priority critical or system_critical",
    ),
    (
        "event.<aggregate>.<id>.<fact>",
        "facts, appended by the owner of the aggregate under an optimistic lock",
    ),
    (
        "timer.armed.<aggregate>.<id>.<name>",
        "a deadline held by the broker's scheduler",
    ),
    (
        "timer.due.<aggregate>.<id>.<name>",
        "where the broker delivers it",
    ),
    ("memory.<agent>.<topic>", "shared memory, with history"),
    (
        "dead.<service>.<reason>",
        "what could not be processed: the original, and why",
    ),
    ("beat.<agent>", "heartbeats, not stored"),
    (
        "api.<service>.<verb>",
        "queries and operator commands, request and reply (NATS micro services)",
    ),
];

/// Why a string is not a subject of Concord.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It belongs to another installation or another grammar version.
    #[error("does not begin with {expected:?}")]
    Prefix {
        /// What it should begin with.
        expected: String,
    },
    /// The kind is unknown or the number of tokens does not fit it.
    #[error("does not have the form of any subject of this installation")]
    Shape,
    /// A token is not a valid identifier.
    #[error("token <{name}>")]
    Token {
        /// Which token of the grammar.
        name: &'static str,
        /// What is wrong with it.
        source: id::Error,
    },
    /// No such aggregate or service.
    #[error("{name:?} is not a known {what}")]
    Unknown {
        /// "aggregate" or "service".
        what: &'static str,
        /// The token found.
        name: String,
    },
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident ($what:literal) { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name as a subject token.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Parses the subject token.
            pub fn parse(text: &str) -> Result<Self, Error> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(Error::Unknown { what: $what, name: other.to_owned() }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named!(
    /// A kind of aggregate; each has exactly one owning service.
    Aggregate("aggregate") {
        /// One matter under deliberation; owned by the coordinator.
        Case = "case",
        /// The conflicts found among a case's findings; owned by the conflict detector.
        Detection = "detection",
        /// The life of one conflict; owned by the debate facilitator.
        Debate = "debate",
        /// A point in time that somebody waits for; owned by the escalation timer.
        Deadline = "deadline",
        /// What is known of how often an agent was right; owned by the debate facilitator.
        Record = "record",
        /// How debates of one kind about one subject turned out; owned by the debate facilitator.
        Precedent = "precedent",
        /// Who can rule, and which debates wait for a person; one in an installation, owned by the debate facilitator.
        Queue = "queue",
        /// Who is registered and how they are; owned by the coordinator.
        Agent = "agent",
        /// What one agent asked another for; owned by the coordinator.
        Request = "request",
        /// A conversation, and whom its messages wake; owned by the agent adapter.
        Wake = "wake",
    }
);

named!(
    /// The services. Each name is also the agent id under which the service speaks.
    Service("service") {
        /// Opens cases, collects findings, decides.
        Coordinator = "coordinator",
        /// Turns findings into typed, ranked conflicts.
        ConflictDetector = "conflict-detector",
        /// Conducts discussion rounds and votes.
        DebateFacilitator = "debate-facilitator",
        /// Owns time.
        EscalationTimer = "escalation-timer",
        /// Hosts agents that do not speak NATS, and notifies people by email and webhook.
        AgentAdapter = "agent-adapter",
    }
);

impl Service {
    /// The agent id under which this service sends and receives messages.
    pub fn agent_id(self) -> AgentId {
        AgentId::trusted(self.as_str())
    }
}

/// Which stream a message travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Priorities low to high.
    Normal,
    /// Priorities critical and system_critical: own stream, own consumers.
    Urgent,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Normal, Self::Urgent];

    /// The lane's token.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "msg",
            Self::Urgent => "urgent",
        }
    }
}

/// One concrete subject, without prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Something said.
    Message {
        /// Normal or urgent.
        lane: Lane,
        /// The case, if in one.
        case: Option<CaseId>,
        /// The sender: the broker lets an agent publish only under its own name.
        from: AgentId,
        /// The addressee.
        to: Recipient,
        /// The message type as a token; known types are in [`crate::MessageType`].
        kind: Token,
    },
    /// A fact of an aggregate.
    Event {
        /// Kind of aggregate.
        aggregate: Aggregate,
        /// Which one.
        id: Token,
        /// What happened.
        fact: Token,
    },
    /// A deadline held by the broker's scheduler.
    TimerArmed {
        /// Kind of aggregate.
        aggregate: Aggregate,
        /// Which one.
        id: Token,
        /// Name of the deadline inside the aggregate.
        name: Token,
    },
    /// A deadline that the broker's scheduler has delivered.
    TimerDue {
        /// Kind of aggregate.
        aggregate: Aggregate,
        /// Which one.
        id: Token,
        /// Name of the deadline inside the aggregate.
        name: Token,
    },
    /// A topic of shared memory.
    Memory {
        /// Who wrote it.
        agent: AgentId,
        /// About what.
        topic: Token,
    },
    /// Something that could not be processed.
    Dead {
        /// By which service.
        service: Service,
        /// Why, in one token.
        reason: Token,
    },
    /// A heartbeat.
    Beat {
        /// Whose.
        agent: AgentId,
    },
    /// A query or operator command.
    Api {
        /// Of which service.
        service: Service,
        /// What to do.
        verb: Token,
    },
}

/// Builds and parses the subjects of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectSpace {
    root: String,
}

impl Default for SubjectSpace {
    fn default() -> Self {
        Self {
            root: format!("{DEFAULT_PREFIX}.{VERSION}."),
        }
    }
}

impl SubjectSpace {
    /// The first token.
    pub fn prefix(&self) -> &str {
        self.root.split('.').next().unwrap_or_default()
    }

    /// The subjects under `prefix`, one token such as `concord`.
    pub fn new(prefix: &Token) -> Self {
        Self {
            root: format!("{prefix}.{VERSION}."),
        }
    }

    /// The subject as text.
    pub fn build(&self, subject: &Subject) -> String {
        match subject {
            Subject::Message {
                lane,
                case,
                from,
                to,
                kind,
            } => {
                let case = case.as_ref().map_or(NO_CASE, CaseId::as_str);
                self.under_root(&[
                    lane.as_str(),
                    case,
                    from.as_str(),
                    to.as_str(),
                    kind.as_str(),
                ])
            }
            Subject::Event {
                aggregate,
                id,
                fact,
            } => self.under_root(&["event", aggregate.as_str(), id.as_str(), fact.as_str()]),
            Subject::TimerArmed {
                aggregate,
                id,
                name,
            } => self.under_root(&[
                "timer",
                "armed",
                aggregate.as_str(),
                id.as_str(),
                name.as_str(),
            ]),
            Subject::TimerDue {
                aggregate,
                id,
                name,
            } => self.under_root(&[
                "timer",
                "due",
                aggregate.as_str(),
                id.as_str(),
                name.as_str(),
            ]),
            Subject::Memory { agent, topic } => {
                self.under_root(&["memory", agent.as_str(), topic.as_str()])
            }
            Subject::Dead { service, reason } => {
                self.under_root(&["dead", service.as_str(), reason.as_str()])
            }
            Subject::Beat { agent } => self.under_root(&["beat", agent.as_str()]),
            Subject::Api { service, verb } => {
                self.under_root(&["api", service.as_str(), verb.as_str()])
            }
        }
    }

    /// The subject of these tokens, in one allocation: two are built for every message.
    fn under_root(&self, tokens: &[&str]) -> String {
        let length = tokens.iter().map(|token| token.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(self.root.len() + length);
        text.push_str(&self.root);
        for (place, token) in tokens.iter().enumerate() {
            if place > 0 {
                text.push('.');
            }
            text.push_str(token);
        }
        text
    }

    /// The inverse of [`Self::build`].
    pub fn parse(&self, text: &str) -> Result<Subject, Error> {
        let rest = text.strip_prefix(&self.root).ok_or_else(|| Error::Prefix {
            expected: self.root.clone(),
        })?;
        let tokens: Vec<&str> = rest.split('.').collect();
        match tokens.as_slice() {
            ["msg", case, from, to, kind] => message(Lane::Normal, case, from, to, kind),
            ["urgent", case, from, to, kind] => message(Lane::Urgent, case, from, to, kind),
            ["event", aggregate, id, fact] => Ok(Subject::Event {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                fact: token("fact", fact)?,
            }),
            ["timer", "armed", aggregate, id, name] => Ok(Subject::TimerArmed {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                name: token("name", name)?,
            }),
            ["timer", "due", aggregate, id, name] => Ok(Subject::TimerDue {
                aggregate: Aggregate::parse(aggregate)?,
                id: token("id", id)?,
                name: token("name", name)?,
            }),
            ["memory", agent, topic] => Ok(Subject::Memory {
                agent: agent_id("agent", agent)?,
                topic: token("topic", topic)?,
            }),
            ["dead", service, reason] => Ok(Subject::Dead {
                service: Service::parse(service)?,
                reason: token("reason", reason)?,
            }),
            ["beat", agent] => Ok(Subject::Beat {
                agent: agent_id("agent", agent)?,
            }),
            ["api", service, verb] => Ok(Subject::Api {
                service: Service::parse(service)?,
                verb: token("verb", verb)?,
            }),
            _ => Err(Error::Shape),
        }
    }

    /// The sender token of a message subject whose other tokens need not be valid: whom to tell what is wrong with it.
    pub fn sender_of(&self, text: &str) -> Option<AgentId> {
        let rest = text.strip_prefix(&self.root)?;
        let mut tokens = rest.split('.');
        matches!(tokens.next(), Some("msg" | "urgent")).then_some(())?;
        AgentId::new(tokens.nth(1)?).ok()
    }
}

fn message(lane: Lane, case: &str, from: &str, to: &str, kind: &str) -> Result<Subject, Error> {
    let case = match case {
        NO_CASE => None,
        other => Some(CaseId::new(other).map_err(|source| Error::Token {
            name: "case",
            source,
        })?),
    };
    let to = Recipient::new(to).map_err(|source| Error::Token { name: "to", source })?;
    Ok(Subject::Message {
        lane,
        case,
        from: agent_id("from", from)?,
        to,
        kind: token("type", kind)?,
    })
}

fn token(name: &'static str, text: &str) -> Result<Token, Error> {
    Token::new(text).map_err(|source| Error::Token { name, source })
}

fn agent_id(name: &'static str, text: &str) -> Result<AgentId, Error> {
    AgentId::new(text).map_err(|source| Error::Token { name, source })
}

#[cfg(test)]
mod tests;
