//! Rebuilding: the same facts give the same state, and deciding again gives the same votes.

use std::collections::BTreeSet;

use concord_events::{AggregateEvent, DebateEvent, DebateOpened, StoredEvent};
use concord_wire::payload::{ConflictOutcome, Status};

use crate::aggregates::debate::{DebateMachine, DebateState, Ended};
use crate::machine::Versioned;
use crate::{Machine, aggregates::escalation};

/// A difference between what is stored and what the domain comes to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Which aggregate.
    pub aggregate: String,
    /// Sequence of the fact.
    pub sequence: u64,
    /// What differs.
    pub what: String,
}

/// Rebuilds one aggregate from its facts, and checks what each record says of itself: predecessors and deadlines.
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

/// Applies one more fact and says where its record differs from what the facts before it lead to.
pub fn step<M: Machine>(rebuilt: &mut Versioned<M>, record: &StoredEvent<M::Event>) -> Vec<String> {
    let mut differences = Vec::new();
    if record.meta.earlier != rebuilt.sequences {
        differences.push(predecessors(&record.meta.earlier, &rebuilt.sequences));
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

/// How the predecessors that a fact names differ from those it has. Of long lists only what differs is of interest.
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

/// Decides the end of a resolved debate again, the count of its vote included, from the answers and positions that the
/// rebuilt state comes to.
pub fn recount(records: &[StoredEvent<DebateEvent>]) -> Vec<Difference> {
    let mut state = DebateState::default();
    let mut differences = Vec::new();
    for record in records {
        DebateMachine::apply(&mut state, record.clone());
        let found = recount_one(&state, record);
        differences.extend(found.into_iter().map(|what| difference(record, what)));
    }
    differences
}

/// Counts again when `record` resolved the debate; `after` is the debate's state after it.
pub fn recount_one(after: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<String> {
    let (DebateEvent::Resolved(resolved), Some(opened)) = (&record.event, &after.opened) else {
        return Vec::new();
    };
    let outcome: &ConflictOutcome = &resolved.outcome;
    let mut differences = Vec::new();
    if outcome.positions != after.positions {
        differences.push("the final positions are not those that the answers lead to".to_owned());
    }
    if outcome.status == Status::Cancelled {
        // Cut off in the middle of a round: there was nothing to count.
        return differences;
    }
    if after.ladder.is_some() {
        differences.extend(mediated_again(after, opened, outcome));
        return differences;
    }
    let (status, resolution, tally) = Ended::of_state(after, opened).ending_again();
    if outcome.tally != tally {
        differences.push(format!(
            "the stored tally {:?} is not the count {tally:?}",
            outcome.tally
        ));
    }
    if (outcome.status, &outcome.resolution) != (status, &resolution) {
        let stored = (outcome.status, &outcome.resolution);
        differences.push(format!(
            "it ended with {stored:?}; decided again it ends with {:?}",
            (status, resolution)
        ));
    }
    differences
}

/// Compares the track records again where they decided.
fn mediated_again(
    after: &DebateState,
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
) -> Vec<String> {
    if outcome.status != Status::Mediation {
        return Vec::new();
    }
    let opinion = after
        .ladder
        .as_ref()
        .and_then(|ladder| ladder.opinion.as_deref());
    let (mediation, resolution) = escalation::mediate(opened, &after.positions, opinion);
    let same = outcome.mediation.as_deref() == Some(&mediation) && outcome.resolution == resolution;
    let differs = || {
        format!(
            "mediation stored {:?}; compared again it is {mediation:?}",
            outcome.mediation
        )
    };
    if same { Vec::new() } else { vec![differs()] }
}

#[cfg(test)]
mod tests;
