//! Every subject that agents use. They are built and parsed here and nowhere else.
//!
//! The subjects that only services use (events, deadlines, dead letters) are in the module `subject` of `concord-events`.
//! The grammar is that of `docs/subjects.md`, which is generated from [`GRAMMAR`].

mod filters;
mod names;
mod permissions;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use names::{AgentInbox, OPERATOR, RegisteredInbox, whose_name};
pub use permissions::{MEMBER_VERBS, Permissions};

use crate::id::{self, AgentId, CaseId, Recipient, Token};

/// Version of the subject grammar; the second token of every subject.
pub const VERSION: &str = "v1";
/// Prefix when none is configured.
pub const DEFAULT_PREFIX: &str = "concord";
/// The case token of a message outside any case.
const NO_CASE: &str = "_";

/// Form and purpose of every subject, for the generated reference.
pub const GRAMMAR: [(&str, &str); 6] = [
    (
        "msg.<case>.<from>.<to>.<type>",
        "what agents, people and services say",
    ),
    (
        "urgent.<case>.<from>.<to>.<type>",
        "the same at priority critical or system_critical",
    ),
    (
        "memory.<agent>.<topic>",
        "what the processes of a service share; what agents remember is asked for",
    ),
    ("beat.<agent>", "heartbeats, not stored"),
    (
        "api.<service>.<verb>",
        "queries and operator commands, request and reply (NATS micro services)",
    ),
    (
        "api.<service>.<verb>.<caller>",
        "the same of somebody with a name, whose role the service checks",
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
    /// A message.
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
    /// A topic of shared memory.
    Memory {
        /// The agent that wrote it.
        agent: AgentId,
        /// The topic.
        topic: Token,
    },
    /// A heartbeat.
    Beat {
        /// The agent that is alive.
        agent: AgentId,
    },
    /// A query or operator command.
    Api {
        /// The service that is asked.
        service: Service,
        /// What to do.
        verb: Token,
        /// Who asks: the broker lets somebody ask only under their own name. Without one it is an operator of the installation.
        caller: Option<AgentId>,
    },
}

/// A family of subjects: how one is written, and how it is read.
pub trait SubjectForm: Sized {
    /// The subject as text under `space`.
    fn build(&self, space: &SubjectSpace) -> String;
    /// Parses the tokens that follow prefix and version.
    fn parse(tokens: &[&str]) -> Result<Self, Error>;
}

impl SubjectForm for Subject {
    fn build(&self, space: &SubjectSpace) -> String {
        match self {
            Self::Message {
                lane,
                case,
                from,
                to,
                kind,
            } => {
                let case = case.as_ref().map_or(NO_CASE, CaseId::as_str);
                space.join(&[
                    lane.as_str(),
                    case,
                    from.as_str(),
                    to.as_str(),
                    kind.as_str(),
                ])
            }
            Self::Memory { agent, topic } => {
                space.join(&["memory", agent.as_str(), topic.as_str()])
            }
            Self::Beat { agent } => space.join(&["beat", agent.as_str()]),
            Self::Api {
                service,
                verb,
                caller,
            } => {
                let asked = ["api", service.as_str(), verb.as_str()];
                match caller {
                    None => space.join(&asked),
                    Some(caller) => {
                        let [api, service, verb] = asked;
                        space.join(&[api, service, verb, caller.as_str()])
                    }
                }
            }
        }
    }

    fn parse(tokens: &[&str]) -> Result<Self, Error> {
        match tokens {
            ["msg", case, from, to, kind] => message(Lane::Normal, case, from, to, kind),
            ["urgent", case, from, to, kind] => message(Lane::Urgent, case, from, to, kind),
            ["memory", agent, topic] => Ok(Self::Memory {
                agent: agent_id("agent", agent)?,
                topic: token("topic", topic)?,
            }),
            ["beat", agent] => Ok(Self::Beat {
                agent: agent_id("agent", agent)?,
            }),
            ["api", service, verb] => Ok(Self::Api {
                service: Service::parse(service)?,
                verb: token("verb", verb)?,
                caller: None,
            }),
            ["api", service, verb, caller] => Ok(Self::Api {
                service: Service::parse(service)?,
                verb: token("verb", verb)?,
                caller: Some(agent_id("caller", caller)?),
            }),
            _ => Err(Error::Shape),
        }
    }
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
    pub fn build(&self, subject: &impl SubjectForm) -> String {
        subject.build(self)
    }

    /// The subject of these tokens under the prefix and version, in one allocation: two are built for every message.
    pub fn join(&self, tokens: &[&str]) -> String {
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

    /// Parses a subject; the inverse of [`Self::build`].
    pub fn parse<S: SubjectForm>(&self, text: &str) -> Result<S, Error> {
        let rest = text.strip_prefix(&self.root).ok_or_else(|| Error::Prefix {
            expected: self.root.clone(),
        })?;
        let tokens: Vec<&str> = rest.split('.').collect();
        S::parse(&tokens)
    }

    /// The sender in a message's subject whose other tokens need not be valid. It is told what is wrong with the message.
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

/// Parses a token of a subject; `name` is its name in the grammar.
pub fn token(name: &'static str, text: &str) -> Result<Token, Error> {
    Token::new(text).map_err(|source| Error::Token { name, source })
}

fn agent_id(name: &'static str, text: &str) -> Result<AgentId, Error> {
    AgentId::new(text).map_err(|source| Error::Token { name, source })
}

#[cfg(test)]
mod tests;
