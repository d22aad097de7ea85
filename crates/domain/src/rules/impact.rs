//! What an analysis rests on, and what changes when that does: the graph, estimates, the report, the plan.

pub mod estimate;
pub mod formula;
pub mod graph;
pub mod models;
pub mod plan;
pub mod report;
pub mod resting;
