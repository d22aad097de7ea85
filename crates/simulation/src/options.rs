//! What a seed is run with.

use std::sync::Arc;

use crate::faults::{Faults, InjectedBug};

/// What kind of world a seed is run in.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What goes wrong.
    pub faults: Faults,
    /// A bug to inject.
    pub injected_bug: Option<InjectedBug>,
    /// Replicas of each service.
    pub replicas: usize,
    /// Whether disagreements climb the ladder.
    pub ladder: bool,
    /// Whether tasks are handed out besides.
    pub tasks: bool,
    /// Whether it is the world of a hosted agent instead of that of the services.
    pub hosted: bool,
    /// Messages that strangers send in the first seconds besides: the tokens of the subject after the lane, and the body. A
    /// world with such messages is given longer to come to rest, for they may open cases under any policy.
    pub intrusions: Arc<[(String, Vec<u8>)]>,
    /// Whether to keep a log of what happens.
    pub verbose: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            faults: Faults::default(),
            injected_bug: None,
            replicas: 2,
            ladder: false,
            tasks: false,
            hosted: false,
            intrusions: Arc::default(),
            verbose: false,
        }
    }
}
