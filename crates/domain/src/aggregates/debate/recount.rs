//! Decides the end of a debate again, from the answers and positions that its events lead to.

use concord_events::{DebateEvent, DebateOpened, StoredEvent};
use concord_wire::payload::{ConflictOutcome, Status, Tally};

use super::strategy::Conclusion;
use super::{DebateState, escalation, rounds};

/// The differences between a stored event and what is decided again: the end of a debate, and each vote, also one that was too narrow. `after` is
/// the debate's state after the event.
pub(super) fn recount(after: &DebateState, record: &StoredEvent<DebateEvent>) -> Vec<String> {
    let Some(opened) = &after.opened else {
        return Vec::new();
    };
    match &record.event {
        DebateEvent::Resolved(resolved) => ended(after, opened, &resolved.outcome),
        DebateEvent::Escalated(escalated) => {
            let discussion = escalated.discussion.iter();
            let climbed = discussion.map(|discussion| discussion.tally.as_ref());
            climbed
                .filter_map(|stored| climbed_from(after, opened, stored))
                .collect()
        }
        DebateEvent::FellBack(fell) => brought_along(after, &fell.outcome).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The vote that this event states and that [`recount`] counts again; none where it only repeats an earlier one.
pub fn counted_vote<'a>(after: &DebateState, event: &'a DebateEvent) -> Option<&'a Tally> {
    match event {
        DebateEvent::Resolved(resolved) if after.ladder.is_none() => {
            resolved.outcome.tally.as_ref()
        }
        DebateEvent::Escalated(escalated) => escalated.discussion.as_ref()?.tally.as_ref(),
        _ => None,
    }
}

/// Counts the vote again after which a debate has climbed. Whether it had to climb is not asked: builds before let some climb of which all parties
/// held the same.
fn climbed_from(
    after: &DebateState,
    opened: &DebateOpened,
    stored: Option<&Tally>,
) -> Option<String> {
    let tally = match rounds::conclude_again(after, opened) {
        Conclusion::Escalate { tally, .. } => tally,
        Conclusion::Resolve(_) => stored.map(|_| rounds::tally_again(after, opened)),
    };
    another_tally(stored, tally.as_ref())
}

/// On the ladder an outcome repeats the vote from which the debate has climbed.
fn brought_along(after: &DebateState, outcome: &ConflictOutcome) -> Option<String> {
    let ladder = after.ladder.as_ref();
    let climbed = ladder.and_then(|ladder| ladder.tally.as_ref());
    another_tally(outcome.tally.as_ref(), climbed)
}

fn another_tally(stored: Option<&Tally>, counted: Option<&Tally>) -> Option<String> {
    (stored != counted).then(|| format!("the stored tally {stored:?} is not the count {counted:?}"))
}

/// The differences between the stored end of a debate and what is decided again.
fn ended(after: &DebateState, opened: &DebateOpened, outcome: &ConflictOutcome) -> Vec<String> {
    let mut differences = Vec::new();
    if outcome.positions != after.positions {
        differences.push("the final positions are not those that the answers lead to".to_owned());
    }
    if outcome.status == Status::Cancelled {
        // Cut off in the middle of a round: there was nothing to count.
        return differences;
    }
    if after.ladder.is_some() {
        differences.extend(brought_along(after, outcome));
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
    differences.extend(another_tally(outcome.tally.as_ref(), ending.tally.as_ref()));
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
