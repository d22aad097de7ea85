//! Reading all events in order: for whoever keeps an account of what is open.

use std::ops::ControlFlow;

use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, EventMeta};
use concord_wire::Token;

use crate::broker::log_reader::{self, LogMessage};
use crate::broker::{Broker, non_event};
use crate::event_store::{Error, ScannedEvent};

/// How many ids are read at once.
const PAGE: usize = 500;

/// Shows `each` the events from `next` on that move deadlines, and moves `next` behind what was read.
pub(super) async fn events(
    broker: &Broker,
    next: &mut u64,
    each: &mut (impl FnMut(ScannedEvent) + Send),
) -> Result<(), Error> {
    let kind = StreamKind::Events;
    let last = log_reader::end(broker, kind).await?.last_sequence;
    if last < *next {
        return Ok(());
    }
    // All events and not only those that move deadlines: a filter of several subjects costs the broker far more.
    let reading = log_reader::read(broker, kind, *next, |message| {
        if let Some(event) = scanned(broker, &message) {
            each(event);
        }
        *next = message.sequence + 1;
        ControlFlow::Continue(())
    });
    reading.await?;
    // What is gone from the end of the stream is not shown.
    *next = (*next).max(last + 1);
    Ok(())
}

/// The ids of the next [`PAGE`] aggregates of a kind, by their events of one name from `next` on and before `end`; moves `next` behind
/// what was read.
pub(super) async fn ids(
    broker: &Broker,
    (aggregate, event): (Aggregate, &str),
    next: &mut u64,
    end: u64,
) -> Result<Vec<Token>, Error> {
    let filters = [broker.subjects().event_of_kind(aggregate, event)];
    let (mut ids, mut behind) = (Vec::new(), end);
    let kind = StreamKind::Events;
    let reading = log_reader::read_headers(broker, kind, &filters, *next, |message| {
        if message.sequence >= end {
            return ControlFlow::Break(());
        }
        let subject = broker.subjects().parse(&message.subject);
        if let Ok(SystemSubject::Event { id, .. }) = subject {
            ids.push(id);
        }
        if ids.len() == PAGE {
            behind = message.sequence + 1;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    reading.await?;
    *next = behind;
    Ok(ids)
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
