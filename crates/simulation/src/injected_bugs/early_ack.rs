//! The bug by which a delivered event is acknowledged as soon as the first event is stored that follows from it. What is still to be done
//! because of it, such as a step of another aggregate, is lost when it fails or when the process dies.

use std::cell::Cell;

use concord_events::topology::ConsumerKind;

use crate::faults::InjectedBug;
use crate::network::{Connection, Request};

tokio::task_local! {
    /// The delivery that is being handled, by the place of its consumer and its sequence; none once it is acknowledged.
    static HANDLED: Cell<Option<(usize, u64)>>;
}

/// Handles a delivery, of which [`after_first`] then knows. Messages are left out: that one is lost is what [`InjectedBug::AckFirst`] shows.
pub(crate) async fn handling<F: Future>(
    (kind, consumer, sequence): (ConsumerKind, usize, u64),
    handled: F,
) -> F::Output {
    let is_event = matches!(kind, ConsumerKind::Events(_) | ConsumerKind::Effects(_));
    let delivery = is_event.then_some((consumer, sequence));
    HANDLED.scope(Cell::new(delivery), handled).await
}

/// An event was stored: acknowledges the delivery that it follows from.
pub(crate) fn after_first(connection: &Connection) {
    if connection.injected_bug() != Some(InjectedBug::AckAfterFirst) {
        return;
    }
    let handled = HANDLED.try_with(Cell::take).ok().flatten();
    if let Some((consumer, sequence)) = handled {
        // It is on its way; nobody waits for the answer.
        drop(connection.send(Request::Acknowledge { consumer, sequence }));
    }
}
