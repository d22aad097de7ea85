//! What is said, by message type. A payload is read by [`crate::Envelope::payload`].

mod case;
mod conflict;
mod debate;
mod decision;
mod exchange;
mod finding;

pub use case::{OpenCase, Task, TaskAssignment};
pub use conflict::{Conflict, ConflictType, Position};
pub use debate::{Answer, ConflictView, DebateLimits, OpenDebate, Question};
pub use decision::{
    ClauseOutcome, ConflictOutcome, Decision, FindingReference, Outcome, Resolution, RoundRecord, SetAside,
    SetAsideReason, Status, Tally, VoteOption, Voter,
};
pub use exchange::{ErrorReport, Notification, NotificationSeverity, Request, Response, ResponseStatus};
pub use finding::{Clause, CriticalFinding, Estimate, FactClaim, Finding, Severity};
