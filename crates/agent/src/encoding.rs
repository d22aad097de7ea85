//! Compression of messages.

use std::borrow::Cow;
use std::sync::PoisonError;

use concord_wire::payload::AgentJoined;
use concord_wire::subject::Service;
use concord_wire::{Encoding, Fault, MessageType, Recipient, header};

use crate::{Agent, Error, Message};

/// How many agents are remembered to read gzip. Messages to any others are sent uncompressed.
const REMEMBERED_MAX: usize = 10_000;

/// The body of a message, decompressed.
pub(crate) fn decoded_body(message: &async_nats::Message) -> Result<Cow<'_, [u8]>, Fault> {
    let encoding = message
        .headers
        .as_ref()
        .and_then(|headers| headers.get(header::CONTENT_ENCODING));
    concord_encoding::plain(&message.payload, encoding.map(|value| value.as_str()))
}

impl Agent {
    /// The body of a message as it is sent, and its encoding if it is compressed.
    pub(crate) fn encoded(
        &self,
        message: &Message,
        body: Vec<u8>,
    ) -> Result<(Vec<u8>, Option<Encoding>), Error> {
        let is_large = self
            .inner
            .compress_over
            .is_some_and(|most| body.len() > most);
        if !(is_large && self.is_gzip_read_by(&message.to_agent)) {
            return Ok((body, None));
        }
        let compressed = concord_encoding::gzip(&body).map_err(Error::handler)?;
        Ok((compressed, Some(Encoding::Gzip)))
    }

    fn is_gzip_read_by(&self, to: &Recipient) -> bool {
        let Recipient::Agent(to) = to else {
            return false;
        };
        let known = || {
            self.inner
                .reads_gzip
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains(to)
        };
        Service::parse(to.as_str()).is_ok() || known()
    }

    /// Remembers which encodings an agent reads, from the announcement that it has joined.
    pub(crate) fn remember_encodings(&self, message: &Message) {
        if message.message_type != MessageType::AgentJoined
            || message.from_agent != Service::Coordinator.agent_id()
        {
            return;
        }
        let Ok(AgentJoined { card, .. }) = message.payload() else {
            return;
        };
        let mut known = self
            .inner
            .reads_gzip
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !card.encodings.contains(&Encoding::Gzip) {
            known.remove(&card.agent_id);
        } else if known.len() < REMEMBERED_MAX {
            known.insert(card.agent_id);
        }
    }
}
