//! Events of a deadline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::Token;
use concord_wire::timestamp::Timestamp;

events! {
    /// What can happen to a deadline.
    DeadlineEvent of Aggregate::Deadline;
    CaseElapsed(DeadlineElapsed) = "case_elapsed", effects: false, deadlines: false,
        "A deadline of a case has passed; the coordinator decides what that means.";
    DebateElapsed(DeadlineElapsed) = "debate_elapsed", effects: false, deadlines: false,
        "A deadline of a debate has passed; the debate facilitator decides what that means.";
    RequestElapsed(DeadlineElapsed) = "request_elapsed", effects: false, deadlines: false,
        "A deadline of a request has passed; the coordinator decides what that means.";
    TaskElapsed(DeadlineElapsed) = "task_elapsed", effects: false, deadlines: false,
        "A deadline of a task has passed; the coordinator decides what that means.";
    CommitmentElapsed(DeadlineElapsed) = "commitment_elapsed", effects: false, deadlines: false,
        "The lease of a commitment has passed; the coordinator ends it.";
    QuestionElapsed(DeadlineElapsed) = "question_elapsed", effects: false, deadlines: false,
        "A deadline of a question to the group has passed; the coordinator decides what that means.";
    AlertElapsed(DeadlineElapsed) = "alert_elapsed", effects: false, deadlines: false,
        "The report that was to follow an alert is due; the coordinator decides what that means.";
    SynthesisElapsed(DeadlineElapsed) = "synthesis_elapsed", effects: false, deadlines: false,
        "Something of shared memory was held back for the whole period of its case's policy; the coordinator has it told.";
    OtherElapsed(DeadlineElapsed) = "other_elapsed", effects: false, deadlines: false,
        "A deadline of something else has passed, which nobody waits for.";
}

impl DeadlineEvent {
    /// The event by which the service that owns the aggregate, and no other, learns of it.
    pub fn of(elapsed: DeadlineElapsed) -> Self {
        match elapsed.aggregate {
            Aggregate::Case => Self::CaseElapsed(elapsed),
            Aggregate::Debate => Self::DebateElapsed(elapsed),
            Aggregate::Request => Self::RequestElapsed(elapsed),
            Aggregate::Task => Self::TaskElapsed(elapsed),
            Aggregate::Commitment => Self::CommitmentElapsed(elapsed),
            Aggregate::Question => Self::QuestionElapsed(elapsed),
            Aggregate::Alert => Self::AlertElapsed(elapsed),
            Aggregate::Synthesis => Self::SynthesisElapsed(elapsed),
            _ => Self::OtherElapsed(elapsed),
        }
    }

    /// The deadline that has passed.
    pub fn elapsed(&self) -> &DeadlineElapsed {
        match self {
            Self::CaseElapsed(elapsed)
            | Self::DebateElapsed(elapsed)
            | Self::RequestElapsed(elapsed)
            | Self::TaskElapsed(elapsed)
            | Self::CommitmentElapsed(elapsed)
            | Self::QuestionElapsed(elapsed)
            | Self::AlertElapsed(elapsed)
            | Self::SynthesisElapsed(elapsed)
            | Self::OtherElapsed(elapsed) => elapsed,
        }
    }

    /// The deadline that has passed.
    pub fn into_elapsed(self) -> DeadlineElapsed {
        match self {
            Self::CaseElapsed(elapsed)
            | Self::DebateElapsed(elapsed)
            | Self::RequestElapsed(elapsed)
            | Self::TaskElapsed(elapsed)
            | Self::CommitmentElapsed(elapsed)
            | Self::QuestionElapsed(elapsed)
            | Self::AlertElapsed(elapsed)
            | Self::SynthesisElapsed(elapsed)
            | Self::OtherElapsed(elapsed) => elapsed,
        }
    }
}

/// The component that noticed that a deadline had passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FiredBy {
    /// The broker's scheduler.
    Scheduler,
    /// The watchdog, because the broker's scheduler did not.
    Watchdog,
}

/// Contents of every event of a deadline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadlineElapsed {
    /// The kind of the aggregate that has the deadline.
    pub aggregate: Aggregate,
    /// The id of the aggregate.
    pub id: Token,
    /// Name of the deadline.
    pub name: Token,
    /// The time at which it was due.
    pub due: Timestamp,
    /// The component that noticed it.
    pub fired_by: FiredBy,
    /// How long after it was due, in milliseconds.
    pub lateness_ms: u64,
}
