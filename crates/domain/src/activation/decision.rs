//! The decision for an agent, in the form in which it is recorded.

use std::fmt;
use std::str::FromStr;

use concord_wire::AgentId;
use serde::{Deserialize, Serialize};

use super::matcher::Candidate;

/// What an agent does about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is given the message to act on.
    Wake,
    /// It is given the message as context when it wakes.
    Observe,
    /// It does not get the message.
    Ignore,
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal),+ $(,)?) => {
        /// The reason of a decision. As text: `direct_target`, `semantic:<skill>`,
        /// `keyword:<phrase>`, `context:<skill>`.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
            /// Its skill with this name matches.
            Semantic(String),
            /// The message contains this phrase of its card.
            Keyword(String),
            /// The assignment that the sender works on matches its skill with this name.
            Context(String),
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($text),)+
                    Self::Semantic(skill) => write!(f, "semantic:{skill}"),
                    Self::Keyword(phrase) => write!(f, "keyword:{phrase}"),
                    Self::Context(skill) => write!(f, "context:{skill}"),
                }
            }
        }

        impl FromStr for Reason {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match (text, text.split_once(':')) {
                    $(($text, _) => Ok(Self::$variant),)+
                    (_, Some(("semantic", skill))) => Ok(Self::Semantic(skill.to_owned())),
                    (_, Some(("keyword", phrase))) => Ok(Self::Keyword(phrase.to_owned())),
                    (_, Some(("context", skill))) => Ok(Self::Context(skill.to_owned())),
                    _ => Err(format!("{text:?} is no reason for a decision to wake")),
                }
            }
        }
    };
}

reasons! {
    /// It sent the message.
    OwnMessage = "own_message",
    /// The message is addressed to it.
    DirectTarget = "direct_target",
    /// The text mentions it.
    Mention = "mention",
    /// An assignment names it.
    TaskAssignment = "task_assignment",
    /// A peer request prefers it.
    PreferredPeer = "preferred_peer",
    /// The message answers one of its own.
    Reply = "reply",
    /// The message asks for objections or is one, and it holds a position on what is discussed.
    Position = "position",
    /// The message names it, after as many others as one message may wake in this way.
    NamedBeyond = "named_beyond",
    /// The probability that the message concerns it is below the threshold.
    BelowThreshold = "below_threshold",
    /// The probability that the message concerns it is very low.
    Irrelevant = "irrelevant",
    /// The message is information for everybody.
    Information = "information",
    /// The type of the message concerns its addressee only.
    NotConcerned = "not_concerned",
    /// It and the sender have answered each other too often.
    LoopBroken = "loop_broken",
}

impl Reason {
    /// The reason without the skill or phrase, as a label of metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Semantic(_) => "semantic",
            Self::Keyword(_) => "keyword",
            Self::Context(_) => "context",
            Self::Position => "position",
            Self::OwnMessage => "own_message",
            Self::DirectTarget => "direct_target",
            Self::Mention => "mention",
            Self::TaskAssignment => "task_assignment",
            Self::PreferredPeer => "preferred_peer",
            Self::Reply => "reply",
            Self::NamedBeyond => "named_beyond",
            Self::BelowThreshold => "below_threshold",
            Self::Irrelevant => "irrelevant",
            Self::Information => "information",
            Self::NotConcerned => "not_concerned",
            Self::LoopBroken => "loop_broken",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The best other agent, while the decision is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rival<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// Its probability.
    pub probability: f64,
}

impl<'a> Rival<'a> {
    /// A candidate in its role as a rival of another.
    pub fn of(candidate: &Candidate<'a>) -> Self {
        Self {
            agent: candidate.agent,
            probability: candidate.probability,
        }
    }
}

/// The best other agent, as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerUp {
    /// The agent.
    pub agent_id: AgentId,
    /// Its probability, 0 to 1, to six decimals.
    pub score: f64,
}

/// The decision for one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What the agent does.
    pub outcome: Outcome,
    /// The reason.
    pub reason: Reason,
    /// The probability that the message concerns it, 0 to 1, to six decimals; `None` where that did
    /// not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The best other agent; `None` where the message was not matched, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
}

impl Decision {
    /// A decision without a match.
    pub(super) fn new(outcome: Outcome, reason: Reason) -> Self {
        Self {
            outcome,
            reason,
            score: None,
            runner_up: None,
        }
    }

    /// A decision by how well an agent matches.
    pub(super) fn matched(
        outcome: Outcome,
        reason: Reason,
        candidate: &Candidate<'_>,
        rival: Option<Rival<'_>>,
    ) -> Self {
        let runner_up = rival.map(|r| RunnerUp {
            agent_id: r.agent.clone(),
            score: rounded(r.probability),
        });
        Self {
            outcome,
            reason,
            score: Some(rounded(candidate.probability)),
            runner_up,
        }
    }
}

/// Rounds to six decimals: the last bits of logarithms and powers differ between machines.
fn rounded(probability: f64) -> f64 {
    (probability * 1e6).round() / 1e6
}
