//! Invariant 5: every deadline fires at least once after it is due, never before, and is acted on
//! at most once.

use std::collections::BTreeMap;

use concord_events::Aggregate;
use concord_events::{Deadline, DeadlineEvent, EventMeta, Origin, StoredEvent, event_id};
use concord_wire::{MessageId, Timestamp, Token};

use super::report::{Counts, Invariant};
use super::{Ending, place};

/// One deadline at one instant.
type Instant = (Aggregate, Token, Token, Timestamp);

/// A deadline that has elapsed, with the sequence of the first event that followed from it.
#[derive(Debug)]
struct Elapsed {
    aggregate: Aggregate,
    id: Token,
    acted_at: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Timing {
    /// The open deadlines of each aggregate, with the sequence of its last event.
    open: BTreeMap<(Aggregate, Token), (u64, Vec<Deadline>)>,
    /// For each instant the sequence of the first event that recorded it.
    instants: BTreeMap<Instant, u64>,
    /// Elapsed deadlines by the `event_id` of their event.
    elapsed: BTreeMap<MessageId, Elapsed>,
}

impl Timing {
    /// Takes the event of an elapsed deadline into account.
    pub(super) fn elapsed(&mut self, counts: &mut Counts, record: &StoredEvent<DeadlineEvent>) {
        let elapsed = record.event.elapsed();
        counts.examined(Invariant::Deadlines);
        let place = format!("{}/{}/{}", elapsed.aggregate, elapsed.id, elapsed.name);
        let mut violated = |what: String| {
            counts.violated(
                Invariant::Deadlines,
                place.clone(),
                Some(record.sequence),
                what,
            );
        };
        if record.meta.at < elapsed.due {
            violated(format!(
                "It elapsed at {}, before it was due at {}.",
                record.meta.at, elapsed.due
            ));
        }
        let instant = (
            elapsed.aggregate,
            elapsed.id.clone(),
            elapsed.name.clone(),
            elapsed.due,
        );
        if let Some(first) = self.instants.get(&instant) {
            violated(format!(
                "It elapsed a second time for {}; the first time was at {first}.",
                elapsed.due
            ));
        }
        self.instants.entry(instant).or_insert(record.sequence);
        let of = Elapsed {
            aggregate: elapsed.aggregate,
            id: elapsed.id.clone(),
            acted_at: None,
        };
        self.elapsed
            .entry(record.meta.event_id.clone())
            .or_insert(of);
    }

    /// Takes any event into account: the deadlines that it leaves open, and whether it follows from
    /// a deadline.
    pub(super) fn event(
        &mut self,
        counts: &mut Counts,
        aggregate: Aggregate,
        sequence: u64,
        meta: &EventMeta,
    ) {
        let key = (aggregate, meta.id.clone());
        if meta.deadlines.is_empty() {
            self.open.remove(&key);
        } else {
            self.open.insert(key, (sequence, meta.deadlines.clone()));
        }
        // A sender may give its message the id of an event; only the event_id of what follows tells
        // the two apart.
        if meta.event_id != event_id(aggregate, &meta.id, Origin::Event, &meta.cause) {
            return;
        }
        let Some(elapsed) = self.elapsed.get_mut(&meta.cause) else {
            return;
        };
        let place = place(aggregate, &meta.id);
        let mut violated = |what: String| {
            counts.violated(Invariant::Deadlines, place.clone(), Some(sequence), what)
        };
        if (elapsed.aggregate, &elapsed.id) != (aggregate, &meta.id) {
            violated(format!(
                "It acts on a deadline of {}/{}.",
                elapsed.aggregate, elapsed.id
            ));
        }
        if let Some(first) = elapsed.acted_at {
            violated(format!(
                "It acts on the deadline {} a second time; the first time was at {first}.",
                meta.cause
            ));
        }
        elapsed.acted_at.get_or_insert(sequence);
    }

    pub(super) fn finish(&self, counts: &mut Counts, ending: &Ending) {
        let is_settled = |sequence: u64| sequence <= ending.settled.events;
        let open = self.open.iter();
        for ((aggregate, id), (_, deadlines)) in open.filter(|(_, (last, _))| is_settled(*last)) {
            for Deadline { name, due } in deadlines {
                if ending.now <= due.plus_millis(ending.grace_ms) {
                    continue;
                }
                let place = format!("{aggregate}/{id}/{name}");
                let instant = (*aggregate, id.clone(), name.clone(), *due);
                match self.instants.get(&instant) {
                    Some(sequence) if !is_settled(*sequence) => {}
                    Some(sequence) => {
                        let what = format!("It elapsed, was due at {due}, and is still open.");
                        counts.violated(Invariant::Deadlines, place, Some(*sequence), what);
                    }
                    None => {
                        counts.examined(Invariant::Deadlines);
                        let what = format!("It was due at {due} and has not fired.");
                        counts.violated(Invariant::Deadlines, place, None, what);
                    }
                }
            }
        }
    }
}
