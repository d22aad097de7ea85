//! What a service makes of something that comes in. Each service's `route` module is a function to this type.

use concord_domain::digest_of_all;
use concord_wire::subject::{Service, Subject};
use concord_wire::{Envelope, Fault, MessageType, Recipient, Token};

/// An input for one aggregate, or the reason why there is none.
#[derive(Debug, Clone)]
pub enum Routed<I> {
    /// Do a step on the aggregate with this id.
    Step {
        /// The id of the aggregate.
        id: Token,
        /// The input.
        input: I,
    },
    /// Nothing to do; the label counts in metrics.
    Ignored(&'static str),
}

/// What a service makes of a message of a type that it does not act on: it lets news pass, and refuses all else, so that nobody
/// waits for it.
pub fn not_acted_on<I>(service: Service, message_type: &MessageType) -> Result<Routed<I>, Fault> {
    match message_type.refusal_by(service) {
        Some(fault) => Err(fault),
        None => Ok(Routed::Ignored("other_type")),
    }
}

/// Digest of who says what, to tell a repetition from another message under the same id.
pub fn digest_of(envelope: &Envelope) -> String {
    let said = [
        envelope.from_agent.as_str(),
        " ",
        envelope.message_type.as_str(),
        " ",
        envelope.payload.get(),
    ];
    digest_of_all(said.map(str::as_bytes))
}

/// Whether an agent sends a message to another agent, or to any agent that can help; or a request to everybody, which whoever answers
/// first has answered.
pub fn is_between_agents(subject: &Subject) -> bool {
    let Subject::Message { from, to, kind, .. } = subject else {
        return false;
    };
    let is_agent = |name: &str| Service::parse(name).is_err();
    is_agent(from.as_str())
        && match to {
            Recipient::Agent(to) => is_agent(to.as_str()),
            Recipient::Any => true,
            // Any other broadcast expects no answer.
            Recipient::All => kind.as_str() == MessageType::Request.as_str(),
        }
}
