//! The algorithms that the state machines use.

pub mod alerting;
pub mod calendar;
pub mod canonical;
pub mod conflict;
pub(crate) mod conflict_type;
pub mod conservative;
pub mod credibility;
pub mod estimate;
pub mod impact;
pub mod names;
pub mod precedent;
pub mod proved;
pub mod round_shares;
pub mod size_budget;
pub mod vote;

/// The rules by which conflicts are found and results are made now; what each says more than the one before is at its use.
pub const RULES: u32 = 2;
