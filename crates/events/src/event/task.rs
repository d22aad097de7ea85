//! Events of a task: who was asked, what came of it, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events;
use crate::Aggregate;
use concord_wire::ErrorCode;
use concord_wire::id::{AgentId, CaseId, MessageId, Token};
use concord_wire::payload::{Bid, HandedContext, OpenTask, ResultStatus, Task};
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a task.
    TaskEvent of Aggregate::Task;
    Opened(TaskOpened) = "opened", effects: true, deadlines: true,
        "A task was opened, and it is said who is asked first.";
    Assigned(TaskAssigned) = "assigned", effects: true, deadlines: true,
        "An agent that was to be asked has room for the task, and gets it.";
    Reported(TaskReported) = "reported", effects: true, deadlines: true,
        "An agent has given a result, a part of it, or says that it failed.";
    BidMade(BidMade) = "bid", effects: true, deadlines: true,
        "An agent has made a bid.";
    Declined(TaskDeclined) = "declined", effects: true, deadlines: true,
        "An agent does not do what it was asked for.";
    HandedOn(TaskHandedOn) = "handed_on", effects: true, deadlines: true,
        "An agent has passed its assignment on to another.";
    Joined(MemberMoved) = "joined", effects: true, deadlines: true,
        "An agent has joined the swarm.";
    Left(MemberMoved) = "left", effects: true, deadlines: true,
        "An agent has left the swarm.";
    Lost(AgentLost) = "lost", effects: true, deadlines: true,
        "An agent that was asked is not there any more, or has no room.";
    Elapsed(TaskElapsed) = "elapsed", effects: true, deadlines: true,
        "A deadline of the task has passed.";
    CaseEnded(TaskCaseEnded) = "case_ended", effects: true, deadlines: true,
        "The case that the task was given to is decided, or there is none.";
    Cancelled(TaskCancelled) = "cancelled", effects: true, deadlines: true,
        "The task was ended before its time.";
}

/// What follows from an event of a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskStep {
    /// These agents are to do the task. Each gets it when it has room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<AgentId>,
    /// These agents are called for proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<AgentId>,
    /// The assignments of these agents are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<Release>,
    /// The bids of these agents are not awarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reject: Vec<AgentId>,
    /// The end of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
}

/// The end of an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    /// The agent.
    pub agent: AgentId,
    /// Whether it has done what it was asked for; none where that counts neither for nor against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// Why it is told that it need not go on; none where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

/// How a task ended, and for whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEnd {
    /// Who opened it.
    pub opened_by: AgentId,
    /// The request that opened it.
    pub request_id: MessageId,
    /// Its strategy.
    pub strategy: String,
    /// How.
    pub outcome: TaskOutcome,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// It has a result.
    Completed {
        /// The result, in the form that the strategy gives.
        result: Value,
        /// Whose work it is.
        by: Vec<AgentId>,
        /// Whether something is missing.
        partial: bool,
    },
    /// It has none.
    Failed {
        /// The reason as a code of the wire.
        code: ErrorCode,
        /// The reason as a word, for programs.
        reason: String,
        /// The reason as a sentence.
        why: String,
        /// What its opener can do.
        advice: String,
    },
    /// Somebody ended it.
    Cancelled {
        /// Who.
        by: AgentId,
        /// Why.
        why: String,
    },
}

/// An agent that can be asked, as it was when the task was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCandidate {
    /// The agent.
    pub agent: AgentId,
    /// How well it fits, 0 to 1.
    pub score: f64,
    /// Whether it had no room for a further task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Contents of `opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOpened {
    /// Who opened it.
    pub opened_by: AgentId,
    /// The request that opened it.
    pub request_id: MessageId,
    /// What was asked for.
    pub terms: OpenTask,
    /// Whom it can be given to, in the order in which they are asked.
    pub candidates: Vec<TaskCandidate>,
    /// The time until which it must be done.
    pub due: Timestamp,
    /// The time until which bids count, where bids are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bids_due: Option<Timestamp>,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `assigned`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAssigned {
    /// The agent.
    pub agent: AgentId,
    /// What is to be done.
    pub task: Task,
    /// The time until which the agent must have answered.
    pub due: Timestamp,
    /// The strategy.
    pub strategy: String,
    /// Most bytes of its result as JSON.
    pub result_bytes_max: usize,
    /// Who had the task before and handed it on, with what it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_on: Option<HandedContext>,
    /// Whether it is an award.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awarded: bool,
    /// The bid that is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bid: Option<Bid>,
}

/// Contents of `reported`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReported {
    /// Who.
    pub by: AgentId,
    /// How it went.
    pub status: ResultStatus,
    /// The result.
    pub result: Value,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `bid`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BidMade {
    /// Who.
    pub by: AgentId,
    /// The bid.
    pub bid: Bid,
    /// How many of its earlier tasks the bidder has finished, as a share; see the worklist.
    pub reliability: f64,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `declined`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskDeclined {
    /// Who.
    pub by: AgentId,
    /// Why.
    pub why: String,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `handed_on`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskHandedOn {
    /// Who opened the task.
    pub opened_by: AgentId,
    /// Who has it now.
    pub to: AgentId,
    /// Who had it, with what it gives.
    pub handed: HandedContext,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `joined` and `left`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberMoved {
    /// Who.
    pub agent: AgentId,
    /// The request, which is answered.
    pub request_id: MessageId,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `lost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentLost {
    /// Who.
    pub agent: AgentId,
    /// Why.
    pub why: String,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `elapsed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskElapsed {
    /// The name of the deadline.
    pub name: Token,
    /// Who was waited for, and is waited for no longer.
    pub silent: Vec<AgentId>,
    /// What follows.
    pub next: TaskStep,
}

/// Contents of `case_ended`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCaseEnded {
    /// The case.
    pub case_id: CaseId,
    /// What follows: the end.
    pub next: TaskStep,
}

/// Contents of `cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCancelled {
    /// The request, where it came as a message, which is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<MessageId>,
    /// What follows: the end.
    pub next: TaskStep,
}

impl TaskEvent {
    /// What follows from the event.
    pub fn next(&self) -> Option<&TaskStep> {
        match self {
            Self::Opened(event) => Some(&event.next),
            Self::Assigned(_) => None,
            Self::Reported(event) => Some(&event.next),
            Self::BidMade(event) => Some(&event.next),
            Self::Declined(event) => Some(&event.next),
            Self::HandedOn(event) => Some(&event.next),
            Self::Joined(event) | Self::Left(event) => Some(&event.next),
            Self::Lost(event) => Some(&event.next),
            Self::Elapsed(event) => Some(&event.next),
            Self::CaseEnded(event) => Some(&event.next),
            Self::Cancelled(event) => Some(&event.next),
        }
    }

    /// The end, where the event ends the task.
    pub fn end(&self) -> Option<&TaskEnd> {
        self.next()?.end.as_ref()
    }
}
