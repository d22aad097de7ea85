//! Calls to addresses outside of NATS, guarded: only listed hosts are called, nothing inside this machine or its network
//! unless that is allowed, redirects are not followed, certificates are checked, and time and size have bounds.
//!
//! Each call has a connection of its own: what is connected to is what was looked up and checked, each time.

mod address;
mod call;
mod sign;
mod tls;

pub use address::{Allowed, Origin, Target};
pub use call::{Caller, Limits, Request, Response};
pub use hyper::header::{HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode, header};
pub use sign::Key;
pub use tls::{Authorities, Error as TlsError};

/// Why a call has no answer. Texts name hosts, never whole addresses, because the rest of an address may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address or the request may not be used, now or later.
    #[error("{0}")]
    Refused(String),
    /// There was no connection: the server has not received the request.
    #[error("{0}")]
    Unreachable(String),
    /// The connection failed after the request was begun: the server may have received it.
    #[error("{0}")]
    Broken(String),
    /// There was no end in time.
    #[error("no end within {after_ms} ms")]
    Timeout {
        /// How long was waited.
        after_ms: u64,
        /// Whether the server may have received the request.
        may_have_arrived: bool,
    },
    /// The answer has more bytes than were asked for.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Error {
    /// Whether the same call would fail at any other time, too.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether the server may have received the request, so that to send it again may have it done twice.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Unreachable(_) => false,
            Self::Broken(_) | Self::TooLong(_) => true,
            Self::Timeout {
                may_have_arrived, ..
            } => *may_have_arrived,
        }
    }
}
