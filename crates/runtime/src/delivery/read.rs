//! Reading the message that a delivery carries.

use concord_encoding::{PAYLOAD_BYTES_MAX, PayloadReference};
use concord_wire::Envelope;
use concord_wire::subject::Service;

use crate::codec::{Error, StoredMessage, read_message};
use crate::context::ServiceContext;
use crate::delivery::{Delivery, HandleError};
use crate::ports::Ports;

impl Delivery {
    /// The envelope of a delivered message, in whatever dialect it was written and wherever its payload is. What it takes
    /// beyond the bytes that were delivered is counted against its sender's limit before it is fetched.
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
            self.whole(context, envelope)
        });
        Ok(envelope.await?)
    }

    /// The message with its payload, wherever that is.
    async fn whole<P: Ports>(
        &self,
        context: &ServiceContext<P>,
        envelope: Envelope,
    ) -> Result<Envelope, Error> {
        let payload = envelope.payload.get().len();
        self.spend(payload.saturating_sub(self.payload.len()))?;
        let Some(reference) = PayloadReference::of(&envelope.payload)? else {
            return Ok(envelope);
        };
        if let Some(fault) = &self.over_limit {
            return Err(Error::Refused((**fault).clone()));
        }
        // What says that it is larger than any payload may be is refused for that, and not fetched.
        if reference.size <= PAYLOAD_BYTES_MAX {
            self.spend(usize::try_from(reference.size).unwrap_or(usize::MAX))?;
        }
        self.take_room(&context.large_payloads, reference.size)
            .await;
        context.ports.with_payload(envelope).await
    }
}
