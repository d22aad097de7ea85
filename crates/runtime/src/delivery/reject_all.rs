//! The inbox of a service that acts on no message: what asks it for something is answered, so that nobody waits for it.

use crate::context::ServiceContext;
use crate::delivery::route::{Routed, not_acted_on};
use crate::delivery::{Ack, Delivery, HandleError, Handler};
use crate::ports::Ports;

/// Refuses or ignores messages.
pub(crate) struct RejectAll<P>(pub(crate) ServiceContext<P>);

impl<P: Ports> Handler for RejectAll<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let envelope = delivery.read(&self.0).await?;
        let routed = not_acted_on::<()>(self.0.service, &envelope.message_type)?;
        if let Routed::Ignored(reason) = routed {
            self.0.count_ignored(reason);
        }
        Ok(Ack::Acknowledge)
    }
}
