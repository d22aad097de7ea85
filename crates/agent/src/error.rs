//! The error of the library.

use std::time::Duration;

use concord_wire::payload::ErrorReport;
use concord_wire::{Fault, Recipient};

/// The reason why an operation of the agent failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection failed, or the broker refused an operation.
    #[error("the broker did not {what}")]
    Broker {
        /// The operation, as it continues the sentence "the broker did not".
        what: &'static str,
        /// The error of the NATS client.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A message, a name or a payload is not valid.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A payload cannot be written as JSON.
    #[error("it cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A request was answered by an `error`.
    #[error("{}: {}", .0.error_code, .0.error_message)]
    Refused(Box<ErrorReport>),
    /// A request was not answered in time.
    #[error("{to} gave no answer within {} s", within.as_secs_f64())]
    Timeout {
        /// The recipient of the request.
        to: Recipient,
        /// The time limit.
        within: Duration,
    },
    /// A handler failed.
    #[error("the handler failed")]
    Handler(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Makes the error of a handler from any other error.
    pub fn handler(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Handler(source.into())
    }

    pub(crate) fn broker(
        what: &'static str,
    ) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> Self {
        move |source| Self::Broker { what, source }
    }
}
