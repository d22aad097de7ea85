//! Activation: which agents a message wakes.

mod matching;
mod text;
pub(crate) mod wake;
