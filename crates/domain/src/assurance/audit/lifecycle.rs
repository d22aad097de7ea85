//! Invariants 1, 3 and 7: every case and debate ends, once, and its events can be replayed.
//!
//! The order in which events may follow each other is part of each [`Machine`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use concord_events::{Aggregate, AggregateEvent, StoredEvent};
use concord_wire::Token;

use super::report::{Counts, Invariant};
use super::{Ending, place};
use crate::assurance::replay;
use crate::machine::{Machine, Versioned};

/// All aggregates that the audit has seen events of, by kind.
#[derive(Debug, Default)]
pub(super) struct Aggregates(BTreeMap<Aggregate, Box<dyn OneKind>>);

impl Aggregates {
    /// Takes an event into account, and counts what is wrong with it.
    pub(super) fn event<M: Machine>(
        &mut self,
        counts: &mut Counts,
        record: &StoredEvent<M::Event>,
    ) {
        let kind = self
            .0
            .entry(M::Event::AGGREGATE)
            .or_insert_with(|| Box::new(KindOf::<M>(BTreeMap::new())));
        let kind: &mut dyn Any = kind.as_mut();
        let kind = kind.downcast_mut::<KindOf<M>>();
        debug_assert!(kind.is_some(), "an aggregate has one state machine");
        if let Some(kind) = kind {
            kind.event(counts, record);
        }
    }

    /// The state of an aggregate that has not ended.
    pub(super) fn state<M: Machine>(&self, id: &Token) -> Option<&M::State> {
        let kind: &dyn Any = self.0.get(&M::Event::AGGREGATE)?.as_ref();
        let one = kind.downcast_ref::<KindOf<M>>()?.0.get(id)?;
        (!one.has_ended).then_some(&one.versioned.state)
    }

    /// Whether there is an aggregate of this kind with this id, ended or not.
    pub(super) fn contains(&self, aggregate: Aggregate, id: &Token) -> bool {
        self.0.get(&aggregate).is_some_and(|kind| kind.contains(id))
    }

    /// Counts the aggregates that should have ended and have not.
    pub(super) fn finish(&self, counts: &mut Counts, ending: &Ending) {
        for kind in self.0.values() {
            kind.count_stuck(counts, ending);
        }
    }
}

/// All aggregates of one kind, whatever their machine.
trait OneKind: Any + fmt::Debug + Send + Sync {
    fn contains(&self, id: &Token) -> bool;
    fn count_stuck(&self, counts: &mut Counts, ending: &Ending);
}

/// All aggregates of one kind.
struct KindOf<M: Machine>(BTreeMap<Token, One<M>>);

impl<M: Machine> fmt::Debug for KindOf<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// One aggregate.
struct One<M: Machine> {
    /// Its state; the empty one when nothing can change after its end, because only the sequences are needed then.
    versioned: Versioned<M>,
    has_ended: bool,
    /// Whether the state was emptied.
    is_forgotten: bool,
    last_sequence: u64,
}

impl<M: Machine> Default for One<M> {
    fn default() -> Self {
        Self {
            versioned: Versioned::default(),
            has_ended: false,
            is_forgotten: false,
            last_sequence: 0,
        }
    }
}

impl<M: Machine> KindOf<M> {
    fn event(&mut self, counts: &mut Counts, record: &StoredEvent<M::Event>) {
        let place = place(M::Event::AGGREGATE, &record.meta.id);
        let one = self.0.entry(record.meta.id.clone()).or_default();
        let is_first = one.versioned.sequences.is_empty();
        if M::begins_again(&record.event) {
            (one.has_ended, one.is_forgotten) = (false, false);
        }
        if is_first && M::MUST_END {
            counts.examined(Invariant::EndsOnce);
        }
        for what in misplaced::<M>(one, is_first, &record.event) {
            counts.violated(
                Invariant::EndsOnce,
                place.clone(),
                Some(record.sequence),
                what,
            );
        }
        let mut differences = replay::step(&mut one.versioned, record);
        // From an empty state nothing can be counted again.
        if !one.is_forgotten {
            differences.extend(M::recount(&one.versioned.state, record));
        }
        for what in differences {
            counts.violated(
                Invariant::Replay,
                place.clone(),
                Some(record.sequence),
                what,
            );
        }
        one.last_sequence = record.sequence;
        one.has_ended |= M::ends(&record.event);
        if one.has_ended && !M::changes_after_end(&one.versioned.state) {
            one.is_forgotten = true;
            one.versioned.state = Arc::default();
        }
    }
}

impl<M: Machine> OneKind for KindOf<M> {
    fn contains(&self, id: &Token) -> bool {
        self.0.contains_key(id)
    }

    fn count_stuck(&self, counts: &mut Counts, ending: &Ending) {
        if !M::MUST_END {
            return;
        }
        for (id, one) in &self.0 {
            counts.examined(Invariant::NothingStuck);
            if one.has_ended || M::may_rest(&one.versioned.state) {
                continue;
            }
            let open = M::deadlines(&one.versioned.state);
            let what = match open.iter().map(|deadline| deadline.due).max() {
                None => "It has not ended, and waits for nothing.".to_owned(),
                Some(last)
                    if one.last_sequence <= ending.settled.events
                        && ending.now > last.plus_millis(ending.grace_ms) =>
                {
                    format!(
                        "It has not ended, although the last of its deadlines was due at {last}."
                    )
                }
                Some(_) => continue,
            };
            counts.violated(
                Invariant::NothingStuck,
                place(M::Event::AGGREGATE, id),
                Some(one.last_sequence),
                what,
            );
        }
    }
}

fn misplaced<M: Machine>(one: &One<M>, is_first: bool, event: &M::Event) -> Vec<String> {
    let name = event.name();
    let mut found = Vec::new();
    let begins = M::begins(event);
    if M::MUST_END && (is_first && !begins || !is_first && begins && !M::MAY_BEGIN_LATER) {
        found.push(if is_first {
            format!("It begins with {name}.")
        } else {
            format!("It has {name} a second time.")
        });
    }
    if one.has_ended && !M::may_follow_end(event) {
        found.push(format!("It has {name} after its end."));
    }
    if !one.has_ended {
        found.extend(M::misplaced(&one.versioned.state, event));
    }
    found
}
