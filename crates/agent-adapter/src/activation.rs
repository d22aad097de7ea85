//! Activation: which agents a message wakes, which observe it, and which it does not concern.

pub(crate) mod context_window;
mod matching;
mod newcomers;
mod question;
#[cfg(test)]
mod scenarios;
mod text;
pub(crate) mod wake;

pub use matching::Matching;
pub use wake::{WakeHandler, bind_effects};
