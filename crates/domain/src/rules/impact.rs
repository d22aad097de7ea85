//! What an analysis rests on, and what changes when that does.

pub mod graph;
