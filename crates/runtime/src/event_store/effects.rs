//! What follows from stored events: published from the event itself, so an effect happens if and only if its event was
//! stored, whatever is killed in between.

use concord_domain::{Machine, effect};
use concord_events::StoredEvent;

use crate::event_store::{Error, Publisher};
use crate::telemetry::trace::Trace;

/// Messages are published together up to so many bytes: what follows from one event can be many times as large.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// Publishes everything that follows from `record`; done when all of it is stored. Doing it again changes nothing,
/// because each message's id follows from the event's sequence.
pub async fn deliver<M: Machine>(
    publisher: &impl Publisher,
    record: &StoredEvent<M::Event>,
    trace: Option<&Trace>,
) -> Result<usize, Error> {
    let (mut count, mut bytes, mut together) = (0, 0, Vec::new());
    // Written one after the other, and none is kept that is published.
    let mut messages = effect::each_message::<M>(record);
    loop {
        let message = messages.next().transpose()?;
        let is_last = message.is_none();
        bytes += message.as_ref().map_or(0, |one| one.payload.get().len());
        together.extend(message);
        if (is_last && !together.is_empty()) || bytes >= TOGETHER_BYTES_MAX {
            publisher.publish(&together, trace).await?;
            count += together.len();
            (bytes, together) = (0, Vec::new());
        }
        if is_last {
            return Ok(count);
        }
    }
}
