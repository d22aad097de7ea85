//! Events of conversations: whom each message of a group woke, and why.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{QuestionTerms, events};
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, MessageId};
use concord_wire::payload::Remembered;
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a conversation.
    WakeEvent of Aggregate::Wake;
    Decided(WakeDecided) = "decided", effects: true, deadlines: false,
        "It was decided whom a message wakes, who observes it, and whom it does not concern.";
    LoopBroken(LoopBroken) = "loop_broken", effects: true, deadlines: false,
        "Two agents that answer each other without end are not given each other's messages for a while.";
}

/// The decision about one agent and one message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WakeOutcome {
    /// It is given the message to act on.
    Wake,
    /// It is given the message as context when it wakes.
    Observe,
    /// The message does not concern it.
    Ignore,
}

/// The decision about one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Weighed {
    /// The agent.
    pub agent_id: AgentId,
    /// The decision.
    pub outcome: WakeOutcome,
    /// The reason: `direct_target`, `mention`, `semantic:<skill>`, ...
    pub reason: String,
    /// The probability that it is concerned, where that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The best other agent, where the message was matched with skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<AgentId>,
    /// Its probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_up_score: Option<f64>,
}

/// Contents of `decided`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WakeDecided {
    /// The message, as the conversation remembers it.
    pub said: Remembered,
    /// Its case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// Whether its sender is neither in its case nor may read it. It is given to nobody as context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_outside: bool,
    /// The agents that it wakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken: Vec<Weighed>,
    /// Agents that it does not wake, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Weighed>,
    /// How many agents observe it.
    pub observing: u32,
    /// How many agents it does not concern.
    pub ignoring: u32,
    /// How many it names beyond the number that a message may wake in such a way.
    #[serde(default, skip_serializing_if = "concord_wire::payload::is_zero")]
    pub named_beyond: u32,
    /// Whether its meaning was compared by a model; by letters alone otherwise.
    pub with_model: bool,
    /// The whole message, for those who wake; none where nobody does, or where it was too large to repeat.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub message: Value,
    /// The messages before it, for the agents that wake, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Remembered>,
    /// Which of these messages an agent that wakes is given, by their place from 0; all of them where it is not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sees: BTreeMap<AgentId, Vec<u8>>,
    /// How it is to be answered, where it is a question to the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionTerms>,
    /// With this message two agents have answered each other too often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_broken: Option<LoopBroken>,
}

/// Contents of `loop_broken`: an exchange of two agents that goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopBroken {
    /// The case, or the message with which the thread began, as far as is known.
    pub thread: String,
    /// The case, if in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The message with which it went too deep.
    pub message_id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The other agent.
    pub to: AgentId,
    /// How often the two have answered each other.
    pub depth: u32,
    /// The time in which they did, in milliseconds.
    pub window_ms: u64,
    /// When the broker stored the message.
    pub at: Timestamp,
    /// The time until which neither wakes the other by this thread, and hosted agents are not given its messages.
    pub until: Timestamp,
}
