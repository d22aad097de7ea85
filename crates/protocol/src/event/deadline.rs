//! Facts of a deadline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts;
use crate::id::Token;
use crate::subject::Aggregate;
use crate::timestamp::Timestamp;

facts! {
    /// What can happen to a deadline.
    DeadlineEvent of Aggregate::Deadline;
    Elapsed(DeadlineElapsed) = "elapsed", effects: false, deadlines: false,
        "A deadline has passed; the owner of the aggregate decides what that means.";
}

/// Who noticed that a deadline had passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FiredBy {
    /// The broker's scheduler.
    Scheduler,
    /// The watchdog, because the broker's scheduler did not.
    Watchdog,
}

/// Contents of `elapsed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadlineElapsed {
    /// Whose deadline: kind of aggregate.
    pub aggregate: Aggregate,
    /// Which aggregate.
    pub id: Token,
    /// Name of the deadline.
    pub name: Token,
    /// When it was due.
    pub due: Timestamp,
    /// Who noticed.
    pub fired_by: FiredBy,
    /// How long after it was due, in milliseconds.
    pub lateness_ms: u64,
}
