//! What a service makes of something that comes in. Each service's `route` module is a function to this type.

use concord_domain::digest_of_all;
use concord_protocol::{Envelope, Fault, MessageType, Token};

/// An input for one aggregate, or the reason why there is none.
#[derive(Debug, Clone)]
pub enum Routed<I> {
    /// Do a step on the aggregate with this id.
    Step {
        /// Which aggregate.
        id: Token,
        /// The input.
        input: I,
    },
    /// Nothing to do; the label counts in metrics.
    Ignored(&'static str),
}

/// The refusal of a message type that this build does not know. The message is kept, for a newer build to retry.
pub fn unknown_type(name: &Token) -> Fault {
    Fault::invalid(
        "/message_type",
        format!("The message type {name:?} is not known here."),
        format!("Use one of: {}.", MessageType::KNOWN.join(", ")),
    )
}

/// Digest of who says what, to tell a repetition from another message under the same id.
pub fn digest_of(envelope: &Envelope) -> String {
    let said = [envelope.from_agent.as_str(), " ", envelope.message_type.as_str(), " ", envelope.payload.get()];
    digest_of_all(said.map(str::as_bytes))
}
