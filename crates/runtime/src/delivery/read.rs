//! Reading the message that a delivery carries.

use concord_wire::Envelope;
use concord_wire::subject::Service;

use crate::codec::{StoredMessage, read_message};
use crate::context::ServiceContext;
use crate::delivery::{Delivery, HandleError};
use crate::ports::Ports;

impl Delivery {
    /// The envelope of a delivered message, in whatever dialect it was written and wherever its payload is.
    pub async fn read<P: Ports>(
        &self,
        context: &ServiceContext<P>,
    ) -> Result<Envelope, HandleError> {
        let message = StoredMessage {
            subject: &self.subject,
            headers: self.headers.as_ref(),
            body: &self.payload,
            sequence: self.sequence,
            stored_at: self.stored_at,
        };
        let ports = &context.ports;
        let envelope = read_message(ports.subjects(), &message, |envelope, dialect| {
            // A service writes in the dialect of its recipient, and has none of its own.
            if Service::parse(envelope.from_agent.as_str()).is_err() {
                ports.wrote_in(&envelope.from_agent, dialect);
            }
            ports.with_payload(envelope)
        });
        Ok(envelope.await?)
    }
}
