//! Invariant 6: an expert is never given a debate beyond their capacity at the time.

use concord_events::{ReviewQueueEvent, StoredEvent};

use super::place;
use super::report::{Counts, Invariant};
use crate::aggregates::review_queue::{QueueState, over_capacity};

/// Takes an event of the review queue into account, given the state before it.
pub(super) fn event(
    counts: &mut Counts,
    before: Option<&QueueState>,
    record: &StoredEvent<ReviewQueueEvent>,
) {
    if !matches!(
        record.event,
        ReviewQueueEvent::Assigned(_) | ReviewQueueEvent::Reassigned(_)
    ) {
        return;
    }
    counts.examined(Invariant::Capacity);
    let empty = QueueState::default();
    if let Some(what) = over_capacity(before.unwrap_or(&empty), &record.event) {
        let place = place(concord_events::Aggregate::ReviewQueue, &record.meta.id);
        counts.violated(Invariant::Capacity, place, Some(record.sequence), what);
    }
}
