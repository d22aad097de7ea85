//! Messages that are looked up one by one, as the stream's leader has them.

use concord_events::topology::StreamKind;
use concord_wire::subject::Lane;
use concord_wire::{Envelope, Timestamp};

use crate::broker::raw_message;
use crate::broker::{Broker, Operation, Unavailable};
use crate::codec::{Error, StoredMessage, dialect, read_message};

/// How far the clocks of two brokers may be apart, in milliseconds: each lane's messages have the time of the broker that leads its stream.
const CLOCKS_APART_MS: i64 = 5_000;

/// Where a search among the stored messages of a lane begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStart {
    /// At this sequence of the lane's stream.
    Sequence(u64),
    /// At the first message that was stored at this time or later.
    Time(Timestamp),
}

impl SearchStart {
    /// Where what follows from a message begins on a lane: on its own lane with the message itself. Of the other lane only the time is
    /// known, and what two agents have ever said to each other there may be much.
    pub fn since_message(is_own_lane: bool, sequence: u64, stored_at: Timestamp) -> Self {
        if is_own_lane {
            return Self::Sequence(sequence);
        }
        let earliest = stored_at.unix_millis().saturating_sub(CLOCKS_APART_MS);
        Self::Time(Timestamp::from_unix_millis(earliest))
    }
}

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

/// The first message from `start` on whose subject matches `filter`. A payload that is kept apart from it is not fetched.
pub(crate) async fn next(
    broker: &Broker,
    lane: Lane,
    filter: &str,
    start: SearchStart,
) -> Result<Option<Stored>, Unavailable> {
    let stream = broker.layout.stream_name(StreamKind::of_lane(lane));
    let found = match start {
        SearchStart::Sequence(sequence) => {
            raw_message::next(broker, &stream, filter, sequence).await
        }
        SearchStart::Time(at) => raw_message::next_since(broker, &stream, filter, at).await,
    };
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
