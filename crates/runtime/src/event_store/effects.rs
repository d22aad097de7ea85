//! What follows from stored facts: published from the fact itself, so an effect happens if and only if its fact was
//! stored, whatever is killed in between.

use concord_domain::{Machine, effect};
use concord_events::StoredEvent;

use crate::event_store::{Error, Publisher};
use crate::telemetry::trace::Trace;

/// Publishes everything that follows from `record`; done when all of it is stored. Doing it again changes nothing,
/// because each message's id follows from the fact's sequence.
pub async fn deliver<M: Machine>(
    outbox: &impl Publisher,
    record: &StoredEvent<M::Event>,
    trace: Option<&Trace>,
) -> Result<usize, Error> {
    let messages = effect::messages::<M>(record)?;
    outbox.publish(&messages, trace).await?;
    Ok(messages.len())
}
