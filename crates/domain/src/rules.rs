//! The algorithms on which the state machines rest.

pub mod calendar;
pub mod canonical;
pub mod conflict;
pub mod conservative;
pub mod credibility;
pub mod estimate;
pub mod size_budget;
pub mod vote;
