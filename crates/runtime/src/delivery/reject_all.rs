//! The inbox of a service that acts on events alone: what asks it for something is answered, so that nobody waits for it.

use concord_wire::subject::Service;
use concord_wire::{Envelope, Fault, MessageType};

use crate::context::ServiceContext;
use crate::delivery::route::unknown_type;
use crate::delivery::{Ack, Delivery, HandleError, Handler};
use crate::ports::Ports;

/// Refuses or ignores messages.
pub(crate) struct RejectAll<P>(pub(crate) ServiceContext<P>);

impl<P: Ports> Handler for RejectAll<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let envelope = delivery.read(&self.0).await?;
        self.0.count_ignored(ignore(self.0.service, &envelope)?);
        Ok(Ack::Acknowledge)
    }
}

/// Why a message to a service that acts on none is ignored, or the refusal of one that waits for something.
pub fn ignore(service: Service, envelope: &Envelope) -> Result<&'static str, Fault> {
    use MessageType::{Error, Notification, Response, Status, Unknown};
    match &envelope.message_type {
        Error | Notification | Response | Status => Ok("other_type"),
        Unknown(name) => Err(unknown_type(name)),
        other => Err(Fault::invalid(
            "/to_agent",
            format!("The {service} acts on no {other}."),
            "Send requests and findings to the coordinator, and answers to the debate-facilitator.",
        )),
    }
}
