//! What is decided around each message to a hosted agent, beside its circuit breaker ([`crate::resilience::breaker`]): who is let in
//! ([`Queue`]), what a call without an answer means ([`verdict`]), whether it is made again ([`next_try`]), and what its
//! asker is told ([`tell`]).
//!
//! The agent adapter does what is decided here with real servers and clocks; the simulator with made-up ones.

use std::time::Duration;

use concord_wire::ErrorCode;

use crate::resilience::breaker::End;

mod queue;

pub use queue::{Admission, Queue};

/// The first pause before another try is at most this long; doubled for each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// Longest pause that is not asked for by the server.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a message is given to a program that ends without answering it.
const DELIVERIES_MAX: u64 = 3;
/// Messages that are told that there is no room, at once.
const TOLD: usize = 16;

/// Why a call has no answer that could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The address may not be called.
    NotAllowed,
    /// There was no connection: the server has not received it.
    Unreachable,
    /// The connection failed after the call was begun.
    Broken,
    /// There was no end in time.
    Late {
        /// Whether the server may have received it.
        may_have_arrived: bool,
    },
    /// The answer has too many bytes.
    TooLong,
    /// The answer has this status, which is none of success.
    Status(u16),
    /// The answer is not of the kind that such a server gives.
    Garbage,
    /// The program did not answer in time, and was ended.
    ProgramLate,
    /// The program ended, or could not be started.
    ProgramEnded,
}

/// Whether the same may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// At once, after a pause.
    Safe,
    /// When the broker delivers the message again: it is the program that failed, and the next copy may not.
    Redelivered,
    /// No.
    Never,
}

/// What a call without an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What the asker is told.
    pub code: ErrorCode,
    /// Whether to try again.
    pub again: Again,
    /// What it says of the agent.
    pub end: End,
}

impl Verdict {
    /// Of what has nothing to do with the agent, and what a further try would not change.
    pub fn here(code: ErrorCode) -> Self {
        Self {
            code,
            again: Again::Never,
            end: End::Unknown,
        }
    }

    /// What the breaker is told. A deadline that left the agent less than its own time is not the agent's fault.
    pub fn end_within(&self, cut_short: bool) -> End {
        if cut_short && self.code == ErrorCode::Timeout {
            End::Unknown
        } else {
            self.end
        }
    }
}

/// What it means that a call has no answer. An idempotent server can tell a call that is made again from another.
pub fn verdict(trouble: Trouble, idempotent: bool) -> Verdict {
    use End::{Failure, Unknown};
    use ErrorCode::{AgentUnavailable, CapacityExceeded, InternalError, Timeout};
    // What may have arrived is sent again only to a server that can tell.
    let uncertain = if idempotent {
        Again::Safe
    } else {
        Again::Never
    };
    let (code, again, end) = match trouble {
        Trouble::Unreachable => (AgentUnavailable, Again::Safe, Failure),
        Trouble::Broken | Trouble::Status(500..=502 | 504..=599) => {
            (AgentUnavailable, uncertain, Failure)
        }
        Trouble::Late {
            may_have_arrived: false,
        } => (Timeout, Again::Safe, Failure),
        Trouble::Late {
            may_have_arrived: true,
        } => (Timeout, uncertain, Failure),
        Trouble::Status(503) => (AgentUnavailable, Again::Safe, Failure),
        // A server that is busy is alive.
        Trouble::Status(429) => (CapacityExceeded, Again::Safe, Unknown),
        Trouble::Status(300..=399 | 401 | 403 | 404)
        | Trouble::NotAllowed
        | Trouble::TooLong
        | Trouble::Garbage => (InternalError, Again::Never, Failure),
        // It has understood, and does not want this message: no word about the next one.
        Trouble::Status(_) => (InternalError, Again::Never, Unknown),
        Trouble::ProgramLate => (Timeout, Again::Never, Failure),
        Trouble::ProgramEnded => (AgentUnavailable, Again::Redelivered, Failure),
    };
    Verdict { code, again, end }
}

/// A pause before a call is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// It is this long.
    pub fixed: Duration,
    /// And by up to so much longer, at random: callers that failed together do not come again together.
    pub jitter_max: Duration,
}

/// How long to wait before the call is made again that failed `tried` times; none when it is not made again. `after` is
/// how long the server asked to be left alone.
pub fn next_try(
    again: Again,
    tried: u32,
    tries_max: u32,
    after: Option<Duration>,
) -> Option<Pause> {
    if again != Again::Safe || tried >= tries_max {
        return None;
    }
    let most = PAUSE_FIRST
        .saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1)))
        .min(PAUSE_MAX);
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

/// What is done about a message that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// Its asker is told, by an error.
    Error,
    /// Its asker is told by the coordinator; nobody needs to hear that twice.
    Nothing,
    /// It is delivered again.
    Later,
}

/// What is done about a message that was delivered so often and has no answer. `elsewhere` says whether the coordinator
/// tells its asker that the time is over: whatever failed, that is the one end of it.
pub fn tell(verdict: &Verdict, deliveries: u64, elsewhere: bool) -> Tell {
    if elsewhere {
        Tell::Nothing
    } else if verdict.again == Again::Redelivered && deliveries < DELIVERIES_MAX {
        Tell::Later
    } else {
        Tell::Error
    }
}

/// Deliveries under way at once: those worked on, those that wait, those whose answer comes later, and some that are
/// told that there is no room.
pub fn in_flight_max(seats: usize, waiting_max: usize) -> usize {
    seats
        .saturating_add(waiting_max.saturating_mul(2))
        .saturating_add(TOLD)
        .min(50_000)
}

#[cfg(test)]
mod tests;
