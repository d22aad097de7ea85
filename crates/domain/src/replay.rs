//! Rebuilding: the same facts give the same state, and deciding again gives the same votes.

use concord_protocol::event::{DebateEvent, Facts, Record};
use concord_protocol::payload::ConflictOutcome;

use crate::Machine;
use crate::debate::{DebateMachine, DebateState};
use crate::machine::Versioned;
use crate::vote;

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
pub fn rebuild<M: Machine>(records: &[Record<M::Event>]) -> (Versioned<M>, Vec<Difference>) {
    let mut rebuilt = Versioned::<M>::default();
    let mut differences = Vec::new();
    for record in records {
        let mut differs = |what: String| {
            let aggregate = format!("{}/{}", M::Event::AGGREGATE, record.meta.id);
            differences.push(Difference { aggregate, sequence: record.sequence, what });
        };
        if record.meta.earlier != rebuilt.sequences {
            differs(format!(
                "it names {:?} as its predecessors; there are {:?}",
                record.meta.earlier, rebuilt.sequences
            ));
        }
        rebuilt.apply(record);
        let deadlines = M::deadlines(&rebuilt.state);
        if record.meta.deadlines != deadlines {
            differs(format!("it says {:?} are open; it leaves {deadlines:?} open", record.meta.deadlines));
        }
    }
    (rebuilt, differences)
}

/// Counts the vote of a resolved debate again, from the positions that the rebuilt state comes to.
pub fn recount(records: &[Record<DebateEvent>]) -> Vec<Difference> {
    let mut state = DebateState::default();
    let mut differences = Vec::new();
    for record in records {
        DebateMachine::apply(&mut state, record);
        let (DebateEvent::Resolved(resolved), Some(opened)) = (&record.event, &state.opened) else { continue };
        let outcome: &ConflictOutcome = &resolved.outcome;
        let mut differs = |what: String| {
            let aggregate = format!("debate/{}", record.meta.id);
            differences.push(Difference { aggregate, sequence: record.sequence, what });
        };
        if outcome.positions != state.positions {
            differs("the final positions are not those that the answers lead to".into());
        }
        if let Some(stored) = &outcome.tally {
            let counted = vote::tally(opened.conflict.kind, &opened.policy, &state.positions);
            if *stored != counted {
                differs(format!("the stored tally {stored:?} is not the count {counted:?}"));
            }
        }
    }
    differences
}
