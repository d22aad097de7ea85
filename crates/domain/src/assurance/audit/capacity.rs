//! Invariant 6: an expert is never given a debate beyond their capacity at the time.

use concord_events::{ReviewQueueEvent, StoredEvent};

use super::place;
use super::report::{Invariant, Ledgers};
use crate::aggregates::review_queue::{QueueState, over_capacity};

/// Takes a fact of the queue into account, given the state before it.
pub(super) fn event(
    ledgers: &mut Ledgers,
    before: Option<&QueueState>,
    record: &StoredEvent<ReviewQueueEvent>,
) {
    if !matches!(
        record.event,
        ReviewQueueEvent::Assigned(_) | ReviewQueueEvent::Reassigned(_)
    ) {
        return;
    }
    ledgers.examined(Invariant::Capacity);
    let nobody = QueueState::default();
    if let Some(what) = over_capacity(before.unwrap_or(&nobody), &record.event) {
        let place = place(concord_events::Aggregate::ReviewQueue, &record.meta.id);
        ledgers.violated(Invariant::Capacity, place, Some(record.sequence), what);
    }
}
