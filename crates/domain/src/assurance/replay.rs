//! Rebuilds aggregates: the same events give the same state, and deciding again gives the same
//! votes.

use std::collections::BTreeSet;

use concord_events::{AggregateEvent, StoredEvent};

use crate::machine::{Machine, Versioned};

/// A difference between what is stored and what the domain derives again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// The aggregate, as `<kind>/<id>`.
    pub aggregate: String,
    /// The sequence of the event.
    pub sequence: u64,
    /// A sentence that says what differs.
    pub what: String,
}

/// Rebuilds one aggregate from its events, and checks the predecessors and deadlines that each of
/// them states.
pub fn rebuild<M: Machine>(records: &[StoredEvent<M::Event>]) -> (Versioned<M>, Vec<Difference>) {
    let mut rebuilt = Versioned::<M>::default();
    let mut differences = Vec::new();
    for record in records {
        let found = step(&mut rebuilt, record);
        differences.extend(found.into_iter().map(|what| difference(record, what)));
    }
    (rebuilt, differences)
}

fn difference<E: AggregateEvent>(record: &StoredEvent<E>, what: String) -> Difference {
    Difference {
        aggregate: format!("{}/{}", E::AGGREGATE, record.meta.id),
        sequence: record.sequence,
        what,
    }
}

/// Applies one more event. Returns where it differs from what the events before it lead to.
pub fn step<M: Machine>(rebuilt: &mut Versioned<M>, record: &StoredEvent<M::Event>) -> Vec<String> {
    let mut differences = Vec::new();
    // A version that carries no states names the last ones there are, whatever they carry.
    let named = &record.meta.earlier;
    if named != rebuilt.named() && *named != rebuilt.sequences {
        differences.push(predecessors(named, rebuilt.named()));
    }
    if let (Some(carried), Some(carry)) = (&record.meta.state, &M::CARRY)
        && !carry.is_carried(carried, &rebuilt.state)
    {
        differences.push("it carries another state than the events before it lead to".to_owned());
    }
    rebuilt.apply(record.clone());
    let deadlines = M::deadlines(&rebuilt.state);
    if record.meta.deadlines != deadlines {
        differences.push(format!(
            "it says {:?} are open; it leaves {deadlines:?} open",
            record.meta.deadlines
        ));
    }
    differences
}

/// How the predecessors that an event names differ from those it has. Of long lists it names only
/// what differs.
fn predecessors(named: &[u64], found: &[u64]) -> String {
    let missing = |from: &[u64], of: &[u64]| -> Vec<u64> {
        let of: BTreeSet<u64> = of.iter().copied().collect();
        from.iter()
            .copied()
            .filter(|sequence| !of.contains(sequence))
            .collect()
    };
    match (missing(named, found), missing(found, named)) {
        (surplus, forgotten) if surplus.is_empty() && forgotten.is_empty() => {
            "it names its predecessors in another order, or twice".to_owned()
        }
        (surplus, forgotten) => {
            format!(
                "among its predecessors it names {surplus:?}, which it should not, and not {forgotten:?}"
            )
        }
    }
}

/// Decides again what can be decided again after each event of one aggregate; of a debate its end,
/// with its vote.
pub fn recount<M: Machine>(records: &[StoredEvent<M::Event>]) -> Vec<Difference> {
    let mut state = M::State::default();
    let mut differences = Vec::new();
    for record in records {
        M::apply(&mut state, record.clone());
        let found = M::recount(&state, record);
        differences.extend(found.into_iter().map(|what| difference(record, what)));
    }
    differences
}

#[cfg(test)]
mod tests;
