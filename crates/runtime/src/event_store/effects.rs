//! What follows from stored events: published from the event itself, so an effect happens if and only if its event was
//! stored, whatever is killed in between.

use concord_domain::{Machine, effect};
use concord_events::StoredEvent;

use crate::event_store::{Error, Publisher};
use crate::telemetry::trace::Trace;

/// Publishes everything that follows from `record`; done when all of it is stored. Doing it again changes nothing,
/// because each message's id follows from the event's sequence.
pub async fn deliver<M: Machine>(
    publisher: &impl Publisher,
    record: &StoredEvent<M::Event>,
    trace: Option<&Trace>,
) -> Result<usize, Error> {
    let messages = effect::messages::<M>(record)?;
    publisher.publish(&messages, trace).await?;
    Ok(messages.len())
}
