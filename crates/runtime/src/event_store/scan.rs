//! Reading all events in order: for whoever keeps an account of what is open.

use std::ops::ControlFlow;

use concord_events::EventMeta;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;

use crate::broker::log_reader::{self, LogMessage};
use crate::broker::{Broker, non_event};
use crate::event_store::{Error, ScannedEvent};

/// Shows `each` the events from `first` on that move deadlines. Returns the sequence to begin at next time.
pub(super) async fn events(
    broker: &Broker,
    first: u64,
    each: &mut (impl FnMut(ScannedEvent) + Send),
) -> Result<u64, Error> {
    let kind = StreamKind::Events;
    let last = log_reader::end(broker, kind).await?.last_sequence;
    if last < first {
        return Ok(first);
    }
    let mut next = last + 1;
    // All events and not only those that move deadlines: a filter of several subjects costs the broker far more.
    let reading = log_reader::read(broker, kind, first, |message| {
        next = next.max(message.sequence + 1);
        if let Some(event) = scanned(broker, &message) {
            each(event);
        }
        ControlFlow::Continue(())
    });
    reading.await?;
    Ok(next)
}

/// The event that moves deadlines; none for another, and for what cannot be read or was written by no service: that says nothing about
/// deadlines.
fn scanned(broker: &Broker, message: &LogMessage) -> Option<ScannedEvent> {
    let subject = broker.subjects().parse(&message.subject).ok()?;
    let SystemSubject::Event {
        aggregate,
        id,
        event,
    } = subject
    else {
        return None;
    };
    if aggregate.leaves_deadlines(event.as_str())
        || non_event::of_stored(Some(&message.headers), &message.payload).is_some()
    {
        return None;
    }
    let meta = EventMeta::decode(&message.payload).ok()?;
    Some(ScannedEvent {
        aggregate,
        id,
        deadlines: meta.deadlines,
    })
}
