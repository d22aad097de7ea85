//! Decides the end of a debate again, from the answers and positions that its events lead to.

use concord_events::{DebateEvent, DebateOpened, StoredEvent};
use concord_wire::payload::{ConflictOutcome, Status};

use super::strategy::Conclusion;
use super::{DebateState, escalation, rounds};

/// The differences between the stored end of a debate and what is decided again; empty for an event that resolves nothing.
/// `after` is the debate's state after the event.
pub(super) fn recount(after: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<String> {
    let (DebateEvent::Resolved(resolved), Some(opened)) = (&record.event, &after.opened) else {
        return Vec::new();
    };
    let outcome = &resolved.outcome;
    let mut differences = Vec::new();
    if outcome.positions != after.positions {
        differences.push("the final positions are not those that the answers lead to".to_owned());
    }
    if outcome.status == Status::Cancelled {
        // Cut off in the middle of a round: there was nothing to count.
        return differences;
    }
    if after.ladder.is_some() {
        differences.extend(mediate_again(after, opened, outcome));
        return differences;
    }
    let ending = match rounds::conclude_again(after, opened) {
        Conclusion::Resolve(ending) => ending,
        Conclusion::Escalate { reason, .. } => {
            differences.push(format!(
                "it ended with {:?}; decided again it is escalated: {reason:?}",
                outcome.status
            ));
            return differences;
        }
    };
    if outcome.tally != ending.tally {
        differences.push(format!(
            "the stored tally {:?} is not the count {:?}",
            outcome.tally, ending.tally
        ));
    }
    let stored = (outcome.status, &outcome.resolution);
    let counted = (ending.status, &ending.resolution);
    if stored != counted {
        differences.push(format!(
            "it ended with {stored:?}; decided again it ends with {counted:?}"
        ));
    }
    differences
}

/// Compares the track records again where they decided.
fn mediate_again(
    after: &DebateState,
    opened: &DebateOpened,
    outcome: &ConflictOutcome,
) -> Option<String> {
    if outcome.status != Status::Mediation {
        return None;
    }
    let opinion = after
        .ladder
        .as_ref()
        .and_then(|ladder| ladder.opinion.as_deref());
    let (mediation, resolution) = escalation::mediate(opened, &after.positions, opinion);
    let is_same =
        outcome.mediation.as_deref() == Some(&mediation) && outcome.resolution == resolution;
    (!is_same).then(|| {
        format!(
            "mediation stored {:?}; compared again it is {mediation:?}",
            outcome.mediation
        )
    })
}
