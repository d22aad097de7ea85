//! The sample panel of Concord: four agents that review contracts by rules.
//!
//! The rules are data: `rules/<agent>.toml` lists what an agent looks for, how many points of risk
//! each clause adds, and from which score it recommends what. The code is the same for all four. It
//! reads the rules (`rules.rs`), applies them to a contract (`review.rs`), reports the result
//! (`finding.rs`) and answers colleagues who disagree (`discussion.rs`). The agents need no network
//! and no model, and the same input always gives the same answer.

mod clause;
mod discussion;
mod facts;
mod finding;
mod numbers;
mod patterns;
pub mod protocol;
mod question;
mod quotes;
mod review;
pub mod reviewer;
pub mod rules;
mod subject;
mod text;
mod wording;
