//! Tasks that Concord hands out: how one is opened, what the agents that are asked answer, and the contract net.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::case::{Task, task_or_title};
use crate::envelope::{Envelope, Priority};
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, Token};
use crate::timestamp::Timestamp;

/// The action of a request to the coordinator that opens a task; the parameters are an [`OpenTask`].
pub const OPEN_TASK: &str = "open_task";
/// The action of a request that ends a task before its time; the parameters are a [`CancelTask`].
pub const CANCEL_TASK: &str = "cancel_task";
/// The action of a request by which an agent joins a swarm; the parameters are a [`TaskMember`].
pub const JOIN_TASK: &str = "join_task";
/// The action of a request by which an agent leaves a swarm; the parameters are a [`TaskMember`].
pub const LEAVE_TASK: &str = "leave_task";
/// The action of a request for the agents that can do something; the parameters are [`FindAgents`].
pub const FIND_AGENTS: &str = "find_agents";

/// How long a task may take when its opener states nothing, in milliseconds.
pub const TASK_MS: u64 = 60_000;
/// How long bids are waited for when the opener states nothing, in milliseconds.
pub const BIDS_MS: u64 = 10_000;

/// The highest price of a bid.
const PRICE_MAX: f64 = 1e15;
/// Most bytes of a bid in words.
const PROPOSAL_BYTES_MAX: usize = 2_048;

/// Which agents a task is for. Whoever is named, or has one of the skills, one of the domains, or a skill that the text is about;
/// everybody on the register where nothing is stated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Criteria {
    /// These agents and no others; at least one where they are stated.
    #[serde(
        deserialize_with = "at_least_one",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub agents: Vec<AgentId>,
    /// Names of skills, in any case; one of them is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Domains, in any case; one of them is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// What is needed in words; agents whose skills are about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Reads a list of agents that is stated. None at all would mean everybody, whom nobody has asked for who states a list.
fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AgentId>, D::Error> {
    let agents = Vec::deserialize(deserializer)?;
    if agents.is_empty() {
        return Err(serde::de::Error::custom(
            "an empty list of agents: name at least one, or leave it out for everybody on the register",
        ));
    }
    Ok(agents)
}

impl Criteria {
    /// Whether everybody on the register is meant.
    pub fn is_everybody(&self) -> bool {
        *self == Self::default()
    }
}

/// When a poll accepts its proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Majority {
    /// More say yes than no.
    #[default]
    Majority,
    /// At least two thirds of those who say yes or no say yes.
    Supermajority,
    /// Nobody says no, and somebody says yes.
    Unanimous,
}

/// What each part of a bid weighs. The score of a bid is the sum of the parts, each 0 to 1, times their weights, divided by the sum
/// of the weights. Price and time are 1 for the lowest bid, and otherwise the lowest divided by the bid's own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BidWeights {
    /// The price.
    pub price: f64,
    /// The time that the bidder will take.
    pub time: f64,
    /// How sure the bidder is.
    pub confidence: f64,
    /// How far the bidder says that it is able to do it.
    pub capability: f64,
    /// How many of its earlier tasks the bidder has finished, as Concord counts.
    pub reliability: f64,
}

impl Default for BidWeights {
    fn default() -> Self {
        let (price, time, confidence, capability, reliability) = (1.0, 1.0, 1.0, 1.0, 1.0);
        Self {
            price,
            time,
            confidence,
            capability,
            reliability,
        }
    }
}

/// Parameters of the request `open_task`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenTask {
    /// The task's id; one is made from the request's `message_id` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Token>,
    /// The name of the strategy by which it is handed out, for example `round_robin`.
    pub strategy: String,
    /// What is to be done; words are read as its title.
    #[serde(deserialize_with = "task_or_title")]
    pub task: Task,
    /// Whom it is for.
    #[serde(default, skip_serializing_if = "Criteria::is_everybody")]
    pub criteria: Criteria,
    /// How long it may take, in milliseconds; a minute when absent.
    #[serde(default = "task_ms")]
    pub deadline_ms: u64,
    /// How long one agent has before another is asked, in milliseconds; until the deadline when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ms: Option<u64>,
    /// `low`, `normal` or `high`: what waits for the same agent goes in this order.
    #[serde(default)]
    pub priority: Priority,
    /// How many results must agree (`consensus`), votes be cast (`poll`) or members succeed (`swarm`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// By how much numbers may differ and count as the same (`consensus`), as a share of the larger one.
    #[serde(default)]
    pub tolerance: f64,
    /// When the proposal is accepted (`poll`).
    #[serde(default)]
    pub majority: Majority,
    /// How long bids are waited for, in milliseconds (`contract_net`), less than the task has; ten seconds, or half of
    /// `deadline_ms` where that is less, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bids_ms: Option<u64>,
    /// What the parts of a bid weigh (`contract_net`).
    #[serde(default)]
    pub weights: BidWeights,
    /// The policy of the case (`panel`): the name of a preset, or an object with `preset` and the fields that differ from it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "crate::policy::requested_policy")]
    pub policy: Value,
}

fn task_ms() -> u64 {
    TASK_MS
}

/// Parameters of the request `cancel_task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTask {
    /// The task.
    pub task_id: Token,
    /// Why, for those who work on it.
    #[serde(default)]
    pub why: String,
}

/// Parameters of the requests `join_task` and `leave_task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskMember {
    /// The task.
    pub task_id: Token,
}

/// Parameters of `find_agents`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindAgents {
    /// Who is looked for.
    #[serde(default)]
    pub criteria: Criteria,
    /// Whether only those who are available are shown.
    #[serde(default)]
    pub available: bool,
}

/// An agent that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundAgent {
    /// The agent.
    pub agent_id: AgentId,
    /// How well it fits, 0 to 1: 1 for a skill, a domain or a name, less for a text.
    pub score: f64,
    /// Whether it is available, busy or unavailable.
    pub status: super::AgentStatus,
    /// How many tasks it works on at a time, where its card says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// What an agent that is given a task by a strategy knows of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// The task.
    pub task_id: Token,
    /// Its strategy.
    pub strategy: String,
    /// Most bytes of the result as JSON; a larger one is refused.
    pub result_bytes_max: usize,
    /// Who had the task before and handed it on, with the context that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_on: Option<HandedContext>,
}

/// What an agent gives to the one to which it hands a task on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandedContext {
    /// Who handed it on.
    pub from: AgentId,
    /// What it knows already, in any form.
    #[serde(default)]
    pub context: Value,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// How a task went for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// Done.
    #[default]
    Success,
    /// It could not be done.
    Failure,
    /// Done in part: more follows, and this stands if nothing does.
    Partial,
}

/// The payload of `task_result`. `reply_to` names the `task_assignment` or `award` that it is the result of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// How it went.
    #[serde(default)]
    pub status: ResultStatus,
    /// The result, in any form; of a `poll` one of `"yes"`, `"no"`, `"abstain"` in any case, or true or false.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    pub result: Value,
    /// Why it could not be done.
    #[serde(default)]
    pub why: String,
    /// The result where none is in `result`: words, or anything else. Where there is neither, all other fields are the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

impl TaskResult {
    /// The result that a message states, whatever names its fields have: what dialects call the content may be any JSON.
    pub fn of(message: &Envelope) -> Result<Self, Fault> {
        let mut stated: Self = message.payload()?;
        if stated.result.is_null() {
            stated.result = match stated.content.take() {
                Some(content) => content,
                None => other_fields(message.payload()?),
            };
        }
        Ok(stated)
    }
}

/// The fields of a payload that a [`TaskResult`] has no name for; null without any.
fn other_fields(mut fields: Map<String, Value>) -> Value {
    for name in ["status", "result", "why", "content"] {
        fields.remove(name);
    }
    if fields.is_empty() {
        Value::Null
    } else {
        Value::Object(fields)
    }
}

/// The payload of `call_for_proposals`: who does this, and for what? Answered by a `bid` or a `refuse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallForProposals {
    /// The task that is to be done.
    pub task_id: Token,
    /// What is to be done.
    pub task: Task,
    /// The time until which a bid counts.
    pub bids_due: Timestamp,
    /// The time until which the task must be done.
    pub deadline: Timestamp,
    /// How bids are compared.
    pub weights: BidWeights,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
}

/// The payload of `bid`. `reply_to` names the `call_for_proposals`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bid {
    /// The price, in whatever the installation counts; 0 or more.
    #[schemars(range(min = 0.0))]
    pub price: f64,
    /// How long it will take, in milliseconds.
    pub time_ms: u64,
    /// How sure the bidder is that it succeeds, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// How far the bidder is able to do it, 0 to 1; 1 when absent.
    #[serde(default = "whole")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub capability: f64,
    /// The proposal in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proposal: String,
}

impl Bid {
    /// Checks ranges and lengths; the pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if !(0.0..=PRICE_MAX).contains(&self.price) {
            return Err(Fault::invalid(
                "/payload/price",
                format!("price is {}.", self.price),
                format!("Give a number from 0 to {PRICE_MAX}."),
            ));
        }
        for (field, share) in [
            ("confidence", self.confidence),
            ("capability", self.capability),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Fault::invalid(
                    format!("/payload/{field}"),
                    format!("{field} is {share}."),
                    "Give a number from 0 to 1.",
                ));
            }
        }
        if self.proposal.len() > PROPOSAL_BYTES_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                "/payload/proposal",
                format!("It has {} bytes.", self.proposal.len()),
                format!("Write at most {PROPOSAL_BYTES_MAX} bytes."),
            ));
        }
        Ok(())
    }
}

fn whole() -> f64 {
    1.0
}

/// The payload of `refuse`: an agent does not do what a call for proposals or an assignment asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Decline {
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// The payload of `award`: the bidder is to do the task. Answered by a `task_result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Award {
    /// What is to be done.
    pub task: Task,
    /// The time until which a result counts.
    pub deadline: Timestamp,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
    /// The task.
    pub work: Work,
    /// The bid that was accepted; null where the task was handed on to an agent that made none.
    pub bid: Option<Bid>,
}

/// The payload of `handoff`, to the coordinator: the sender passes its assignment on. `reply_to` names the assignment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// Who is to have it. The coordinator needs it; an agent that is written to directly is meant itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// What the sender knows already, in any form.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub context: Value,
    /// Why.
    #[serde(default)]
    pub reason: String,
}
