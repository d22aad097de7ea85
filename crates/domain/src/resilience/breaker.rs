//! A circuit breaker: what fails again and again is not asked for a while, then tried with one call at a time
//! (Nygard, *Release It!*, 2007).
//!
//! | state     | a call asks to pass                       | a call succeeded                    | a call failed                    | time passes |
//! |-----------|-------------------------------------------|-------------------------------------|----------------------------------|-------------|
//! | closed    | passes                                    | failures in a row: 0                | one more; at `failures_max` open | -           |
//! | open      | refused, until when is said               | (of an earlier time: nothing)       | (of an earlier time: nothing)    | after its time the next call passes, half-open |
//! | half-open | refused while one is under way; else passes | after `successes_min` closed      | open, for twice as long          | a call under way for `probe_ms` is given up |
//!
//! Like the machines it reads no clock; unlike them it stores nothing: how another program answers this process is known
//! best by this process, and is of no use after it.

use concord_wire::Timestamp;
use serde::{Deserialize, Serialize};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// After how many failures in a row it opens; at least 1.
    pub failures_max: u32,
    /// How long it stays open the first time, in milliseconds. Doubled each time in a row that the
    /// trial call fails.
    pub open_ms: u64,
    /// How long it stays open at most, in milliseconds.
    pub open_max_ms: u64,
    /// How many trial calls in a row must succeed before it closes; at least 1.
    pub successes_min: u32,
    /// After this time, in milliseconds, a trial call without an end makes way for another.
    pub probe_ms: u64,
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls may be made.
    Closed,
    /// Calls are refused.
    Open,
    /// One trial call at a time may be made.
    HalfOpen,
}

impl BreakerState {
    /// The state as a label of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Timestamp,
    },
    HalfOpen {
        successes: u32,
        probe_until: Option<Timestamp>,
    },
}

/// The permission to make a call. It identifies the call when its end is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    generation: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The other side answered.
    Success,
    /// The other side did not answer, or could not.
    Failure,
    /// Nothing is known about the other side: the call was given up, or the fault was the caller's.
    Unknown,
}

/// A circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    rules: Rules,
    state: State,
    /// Counts changes of state and trial calls, so that a call that ends late is ignored.
    generation: u64,
    /// How often in a row it opened without closing in between.
    openings: u32,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Closed { failures: 0 },
            generation: 0,
            openings: 0,
        }
    }

    /// The state at this time. A breaker whose open time is over counts as half-open: the next call
    /// may be made.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { until } if now < until => BreakerState::Open,
            State::Open { .. } | State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// The number of failures in a row while closed.
    pub fn failures(&self) -> u32 {
        match self.state {
            State::Closed { failures } => failures,
            State::Open { .. } | State::HalfOpen { .. } => self.rules.failures_max,
        }
    }

    /// Until when calls are refused; `None` where they may be made. Asking changes nothing.
    pub fn refuses_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Closed { .. } => None,
            State::Open { until } => Some(until).filter(|until| now < *until),
            State::HalfOpen { probe_until, .. } => probe_until.filter(|until| now < *until),
        }
    }

    /// Lets a call be made, or returns until when calls are refused.
    pub fn pass(&mut self, now: Timestamp) -> Result<Pass, Timestamp> {
        if let Some(until) = self.refuses_until(now) {
            return Err(until);
        }
        let successes = match self.state {
            State::Closed { .. } => {
                return Ok(Pass {
                    generation: self.generation,
                });
            }
            State::Open { .. } => 0,
            State::HalfOpen { successes, .. } => successes,
        };
        self.generation += 1;
        self.state = State::HalfOpen {
            successes,
            probe_until: Some(now.plus_millis(self.rules.probe_ms)),
        };
        Ok(Pass {
            generation: self.generation,
        })
    }

    /// Records the outcome of a call. An outcome of a call that was overtaken by a change of state
    /// is ignored.
    pub fn ended(&mut self, now: Timestamp, pass: Pass, end: End) {
        if pass.generation != self.generation {
            return;
        }
        match (self.state, end) {
            (State::Closed { .. }, End::Success) => self.state = State::Closed { failures: 0 },
            (State::Closed { failures }, End::Failure) => {
                let failures = failures.saturating_add(1);
                self.state = State::Closed { failures };
                if failures >= self.rules.failures_max.max(1) {
                    self.open(now);
                }
            }
            (State::HalfOpen { successes, .. }, End::Success) => {
                self.generation += 1;
                let successes = successes.saturating_add(1);
                if successes >= self.rules.successes_min.max(1) {
                    self.openings = 0;
                    self.state = State::Closed { failures: 0 };
                } else {
                    self.state = State::HalfOpen {
                        successes,
                        probe_until: None,
                    };
                }
            }
            (State::HalfOpen { .. }, End::Failure) => self.open(now),
            (State::HalfOpen { successes, .. }, End::Unknown) => {
                self.generation += 1;
                self.state = State::HalfOpen {
                    successes,
                    probe_until: None,
                };
            }
            (State::Closed { .. }, End::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    fn open(&mut self, now: Timestamp) {
        let factor = 2_u64.saturating_pow(self.openings);
        let stays = self
            .rules
            .open_ms
            .saturating_mul(factor)
            .min(self.rules.open_max_ms.max(self.rules.open_ms));
        self.openings = self.openings.saturating_add(1);
        self.generation += 1;
        self.state = State::Open {
            until: now.plus_millis(stays),
        };
    }
}

#[cfg(test)]
mod tests;
