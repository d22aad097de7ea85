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
