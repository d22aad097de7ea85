//! Invariant 6: an expert is never given a debate beyond their capacity at the time.

use concord_protocol::event::{QueueEvent, Record};

use super::place;
use super::report::{Invariant, Ledgers};
use crate::queue::{QueueState, over_capacity};

/// Takes a fact of the queue into account, given the state before it.
pub(super) fn event(
    ledgers: &mut Ledgers,
    before: Option<&QueueState>,
    record: &Record<QueueEvent>,
) {
    if !matches!(
        record.event,
        QueueEvent::Assigned(_) | QueueEvent::Reassigned(_)
    ) {
        return;
    }
    ledgers.examined(Invariant::Capacity);
    let nobody = QueueState::default();
    if let Some(what) = over_capacity(before.unwrap_or(&nobody), &record.event) {
        let place = place(concord_protocol::subject::Aggregate::Queue, &record.meta.id);
        ledgers.violated(Invariant::Capacity, place, Some(record.sequence), what);
    }
}
