//! Why a delivery was not handled. Where a failure arises it is decided what becomes of the delivery: it is refused, tried
//! again, or kept as a dead letter at once.

use concord_wire::Fault;

use crate::broker::Unavailable;
use crate::codec;
use crate::event_store::{self, step};

/// Why a delivery was not handled, and with that what becomes of it.
#[derive(Debug)]
pub enum HandleError {
    /// The sender's mistake: the sender is told, and the delivery is kept as a dead letter.
    Refused(Fault),
    /// A failure of ours or of the broker: the delivery is tried again, and kept as a dead letter when it fails too often.
    Retry(Failure),
    /// Somebody outside has refused it for good, for this reason: it is kept as a dead letter at once.
    DeadLetter(String),
}

/// A failure after which a delivery is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Events could not be read or stored.
    #[error(transparent)]
    EventStore(#[from] event_store::Error),
    /// A step could not be done.
    #[error(transparent)]
    Step(#[from] step::Error),
    /// The broker did not do something else.
    #[error(transparent)]
    Broker(#[from] Unavailable),
    /// A stored event cannot be read. No further try will read it, unless a newer build does.
    #[error(transparent)]
    Event(#[from] concord_events::Error),
    /// Something of ours could not be written or read as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Anything else, as the caller of a hosted agent or a notification's channel reports it.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl HandleError {
    /// A failure of another kind, after which the delivery is tried again.
    pub fn retry(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Retry(Failure::Other(error.into()))
    }
}

impl From<Fault> for HandleError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<Failure> for HandleError {
    fn from(failure: Failure) -> Self {
        Self::Retry(failure)
    }
}

impl From<codec::Error> for HandleError {
    fn from(error: codec::Error) -> Self {
        match error {
            codec::Error::Refused(fault) => Self::Refused(fault),
            codec::Error::Unavailable(error) => Self::Retry(error.into()),
        }
    }
}

/// Failures of ours and of the broker.
macro_rules! retried {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for HandleError {
            fn from(error: $error) -> Self {
                Self::Retry(error.into())
            }
        })+
    };
}

retried!(
    event_store::Error,
    step::Error,
    Unavailable,
    concord_events::Error,
    serde_json::Error,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Operation;

    #[test]
    fn who_made_the_mistake_decides_what_becomes_of_a_delivery() {
        let fault = || Fault::invalid("", "No.", "Say yes.");
        let unavailable = || Operation::FetchPayload.failed("no answer");
        for error in [fault().into(), codec::Error::Refused(fault()).into()] {
            assert!(matches!(error, HandleError::Refused(_)), "{error:?}");
        }
        for error in [
            unavailable().into(),
            codec::Error::Unavailable(unavailable()).into(),
            event_store::Error::Unavailable(unavailable()).into(),
        ] {
            assert!(matches!(error, HandleError::Retry(_)), "{error:?}");
        }
    }
}
