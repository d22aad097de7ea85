//! Messages that are looked up one by one, as the stream's leader has them.

use concord_events::topology::StreamKind;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, Timestamp};

use crate::broker::{Broker, Operation, Unavailable};
use crate::{broker::raw_message, codec, codec::claim_check, codec::dialect};

/// A message that is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Where in its stream.
    pub sequence: u64,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// What it says; none where it cannot be read.
    pub envelope: Option<Envelope>,
}

/// The first message from `sequence` on whose subject matches `filter`.
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
    let subject = broker.subjects().parse(&found.subject).ok();
    let body = found.body().unwrap_or_default();
    let Ok(stored_at) = Timestamp::parse(&found.time) else {
        return Ok(None);
    };
    let headers = dialect::headers_of(&found.headers().unwrap_or_default());
    let read = |subject| {
        dialect::read(&body, headers.as_ref(), &subject, found.sequence, stored_at)
            .ok()
            .map(|(read, _)| read)
    };
    let envelope = subject.and_then(read);
    let envelope = match envelope {
        None => None,
        Some(envelope) => match claim_check::whole(broker, envelope).await {
            Ok(envelope) => Some(envelope),
            Err(codec::Error::Unavailable(error)) => return Err(error),
            Err(codec::Error::Refused(_)) => None,
        },
    };
    Ok(Some(Stored {
        sequence: found.sequence,
        stored_at,
        envelope,
    }))
}
