//! Messages that are looked up one by one, as the stream's leader has them.

use concord_events::topology::StreamKind;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, Timestamp};

use crate::broker::raw_message;
use crate::broker::{Broker, Operation, Unavailable};
use crate::codec::{Error, StoredMessage, dialect, read_message};

/// A message that is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its sequence in its stream.
    pub sequence: u64,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// The message, without a payload that is kept apart from it; none where it cannot be read.
    pub envelope: Option<Envelope>,
}

/// The first message from `sequence` on whose subject matches `filter`. A payload that is kept apart from it is not fetched.
pub(crate) async fn next(
    broker: &Broker,
    lane: Lane,
    filter: &str,
    sequence: u64,
) -> Result<Option<Stored>, Unavailable> {
    let stream = broker.layout.stream_name(StreamKind::of_lane(lane));
    let found = raw_message::next(broker, &stream, filter, sequence).await;
    let Some(found) = found.map_err(|error| Operation::FindMessage.failed(error))? else {
        return Ok(None);
    };
    let Ok(stored_at) = Timestamp::parse(&found.time) else {
        return Ok(None);
    };
    let body = found.body().unwrap_or_default();
    let headers = dialect::headers_of(&found.headers().unwrap_or_default());
    let message = StoredMessage {
        subject: &found.subject,
        headers: headers.as_ref(),
        body: &body,
        sequence: found.sequence,
        stored_at,
    };
    let as_sent = async |envelope, _| Ok(envelope);
    let envelope = match read_message(broker.subjects(), &message, as_sent).await {
        Ok(envelope) => Some(envelope),
        Err(Error::Unavailable(error)) => return Err(error),
        Err(Error::Refused(_)) => None,
    };
    Ok(Some(Stored {
        sequence: found.sequence,
        stored_at,
        envelope,
    }))
}
