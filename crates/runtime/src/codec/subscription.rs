//! Messages as they are published, read as far as their headers say.

use bytes::Bytes;
use concord_wire::header;
use futures::{Stream, StreamExt};

use crate::broker::{Broker, Operation, Unavailable};
use crate::codec::dialect;

/// A message that was observed as it was published.
#[derive(Debug, Clone)]
pub struct ObservedMessage {
    /// Its subject.
    pub subject: String,
    /// The dialect that its header declares.
    pub dialect: Option<String>,
    /// Its body, expanded where it was compressed.
    pub payload: Bytes,
}

impl Broker {
    /// Every message that is published from now on on subjects that match `filter`. What is published while there is no
    /// connection is lost.
    pub async fn listen(
        &self,
        filter: String,
    ) -> Result<impl Stream<Item = ObservedMessage> + Send + Unpin + use<>, Unavailable> {
        let heard = self.heard.subscribe(filter).await;
        let heard = heard.map_err(|source| Operation::Subscribe.failed(source))?;
        Ok(heard.map(|message| {
            let declared = message
                .headers
                .as_ref()
                .and_then(|headers| headers.get(header::DIALECT));
            let dialect = declared.map(|value| value.as_str().to_owned());
            // What cannot be expanded cannot be read as it is either, so it may as well stay so.
            let plain = dialect::plain(&message.payload, message.headers.as_ref())
                .ok()
                .map(|body| body.into_owned());
            let payload = plain.map_or(message.payload, Bytes::from);
            ObservedMessage {
                subject: message.subject.to_string(),
                dialect,
                payload,
            }
        }))
    }
}
