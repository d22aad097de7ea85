//! What can go wrong.

use std::time::Duration;

use concord_wire::payload::ErrorReport;
use concord_wire::{Fault, Recipient};

/// Why something that an agent meant to do was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The broker did not do something.
    #[error("the broker did not {what}")]
    Broker {
        /// What it was asked to do.
        what: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A message, a name or a payload is not what the protocol asks for.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Something cannot be written as JSON.
    #[error("it cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A request was answered by an `error`.
    #[error("{}: {}", .0.error_code, .0.error_message)]
    Refused(Box<ErrorReport>),
    /// A request was not answered in time.
    #[error("{to} gave no answer within {} s", within.as_secs_f64())]
    Timeout {
        /// Who was asked.
        to: Recipient,
        /// How long was waited.
        within: Duration,
    },
    /// A handler failed for a reason of its own.
    #[error("the handler failed")]
    Handler(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The failure of a handler.
    pub fn handler(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Handler(source.into())
    }

    pub(crate) fn broker(
        what: &'static str,
    ) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> Self {
        move |source| Self::Broker { what, source }
    }
}
