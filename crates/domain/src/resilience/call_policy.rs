//! The rules for calls of hosted agents, besides their circuit breaker
//! ([`crate::resilience::breaker`]): which message gets a place ([`Queue`]), how a failed call is
//! classified ([`classify`]), whether it is retried ([`next_retry`]), and whether its sender is
//! told ([`handling`]).
//!
//! The agent adapter and the simulator both use these rules.

use std::time::Duration;

use concord_wire::ErrorCode;

use crate::resilience::breaker::End;

mod queue;

pub use queue::{Admission, Queue, Rank};

/// The first pause before a retry is at most this long. It is doubled for each further retry.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// The longest pause that the server did not ask for.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a message is given to a program that ends without answering it.
const DELIVERIES_MAX: u64 = 3;
/// How many messages may be told at once that there is no room.
const TOLD: usize = 16;

/// Why a call has no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// The address may not be called.
    NotAllowed,
    /// There was no connection: the server has not received the call.
    Unreachable,
    /// The connection failed after the call had begun.
    Broken,
    /// The call did not end in time.
    Late {
        /// Whether the server may have received the call.
        may_have_arrived: bool,
    },
    /// The answer has too many bytes.
    TooLong,
    /// The answer has this status, which is not one of success.
    Status(u16),
    /// The answer is not of the kind that such a server gives.
    Garbage,
    /// The program did not answer in time, and was ended.
    ProgramLate,
    /// The program ended, or could not be started.
    ProgramEnded,
}

/// Whether the same call may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// At once, after a pause.
    Safe,
    /// When the broker delivers the message retry: the program failed, and its next copy may not.
    Redelivered,
    /// Not at all.
    Never,
}

/// What follows from a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The error code that the sender is told.
    pub code: ErrorCode,
    /// Whether the call may be made again.
    pub retry: Retry,
    /// What the breaker is told.
    pub end: End,
}

impl Classification {
    /// A failure that has nothing to do with the agent, and that a retry would not change.
    pub fn here(code: ErrorCode) -> Self {
        Self {
            code,
            retry: Retry::Never,
            end: End::Unknown,
        }
    }

    /// What the breaker is told. When a deadline left the agent less than its own time
    /// (`cut_short`), the failure is not the agent's.
    pub fn end_within(&self, cut_short: bool) -> End {
        if cut_short && self.code == ErrorCode::Timeout {
            End::Unknown
        } else {
            self.end
        }
    }
}

/// Classifies a failed call. An idempotent server recognises a call that is made again.
pub fn classify(failure: CallFailure, idempotent: bool) -> Classification {
    use End::{Failure, Unknown};
    use ErrorCode::{AgentUnavailable, CapacityExceeded, InternalError, Timeout};
    // A call that may have arrived is made again only to a server that recognises it.
    let uncertain = if idempotent {
        Retry::Safe
    } else {
        Retry::Never
    };
    let (code, retry, end) = match failure {
        CallFailure::Unreachable => (AgentUnavailable, Retry::Safe, Failure),
        CallFailure::Broken | CallFailure::Status(500..=502 | 504..=599) => {
            (AgentUnavailable, uncertain, Failure)
        }
        CallFailure::Late {
            may_have_arrived: false,
        } => (Timeout, Retry::Safe, Failure),
        CallFailure::Late {
            may_have_arrived: true,
        } => (Timeout, uncertain, Failure),
        CallFailure::Status(503) => (AgentUnavailable, Retry::Safe, Failure),
        CallFailure::TooLong => (CapacityExceeded, Retry::Never, Failure),
        // A server that is busy is alive.
        CallFailure::Status(429) => (CapacityExceeded, Retry::Safe, Unknown),
        CallFailure::Status(300..=399 | 401 | 403 | 404)
        | CallFailure::NotAllowed
        | CallFailure::Garbage => (InternalError, Retry::Never, Failure),
        // The server has understood the message and refuses it. That says nothing about the next
        // message.
        CallFailure::Status(_) => (InternalError, Retry::Never, Unknown),
        CallFailure::ProgramLate => (Timeout, Retry::Never, Failure),
        CallFailure::ProgramEnded => (AgentUnavailable, Retry::Redelivered, Failure),
    };
    Classification { code, retry, end }
}

/// A pause before a call is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// The fixed part.
    pub fixed: Duration,
    /// The most that is added at random, so that callers that failed together do not come back
    /// together.
    pub jitter_max: Duration,
}

/// The pause before the call is made again that failed `tried` times; `None` when it is not made
/// again. `after` is how long the server asked to be left alone.
pub fn next_retry(
    retry: Retry,
    tried: u32,
    tries_max: u32,
    after: Option<Duration>,
) -> Option<Pause> {
    if retry != Retry::Safe || tried >= tries_max {
        return None;
    }
    let most = PAUSE_FIRST
        .saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1)))
        .min(PAUSE_MAX);
    debug_assert!(
        most <= PAUSE_MAX,
        "a pause that the server did not ask for is bounded"
    );
    Some(match after {
        Some(fixed) => Pause {
            fixed,
            jitter_max: PAUSE_FIRST,
        },
        None => Pause {
            fixed: Duration::ZERO,
            jitter_max: most,
        },
    })
}

/// What is done about a message whose call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureHandling {
    /// The sender is told by an error.
    Error,
    /// The sender is told by the coordinator, so nothing is sent.
    Nothing,
    /// The message is delivered again.
    Later,
}

/// What is done about a message that was delivered `deliveries` times and has no answer.
/// `elsewhere` is true when the coordinator tells the sender that the time is over, because the
/// message belongs to a request.
pub fn handling(
    classification: &Classification,
    deliveries: u64,
    elsewhere: bool,
) -> FailureHandling {
    if elsewhere {
        FailureHandling::Nothing
    } else if classification.retry == Retry::Redelivered && deliveries < DELIVERIES_MAX {
        FailureHandling::Later
    } else {
        FailureHandling::Error
    }
}

/// How many deliveries may be under way at once: those with a seat, those that wait, those answered
/// later, and some that are told that there is no room.
pub fn in_flight_max(seats: usize, waiting_max: usize) -> usize {
    seats
        .saturating_add(waiting_max.saturating_mul(2))
        .saturating_add(TOLD)
        .min(50_000)
}

#[cfg(test)]
mod tests;
