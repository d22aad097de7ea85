//! The sample panel of Concord: four agents that review contracts by rules.
//!
//! The rules are data: `rules/<agent>.toml` lists what an agent looks for, how many points of risk
//! each clause adds, and from which score it recommends what. The code is the same for all four. It
//! reads the rules ([`rules`]), applies them to a contract ([`review`]), reports the result
//! ([`finding`]) and answers colleagues who disagree ([`discussion`]). The agents need no network and
//! no model, and the same input always gives the same answer.

pub mod clause;
pub mod discussion;
pub mod facts;
pub mod finding;
mod numbers;
pub mod patterns;
pub mod protocol;
pub mod question;
pub mod quotes;
pub mod review;
pub mod reviewer;
pub mod rules;
pub mod subject;
pub mod text;
pub mod wording;
