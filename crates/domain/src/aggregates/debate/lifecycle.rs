//! The order in which events of a debate may follow each other.

use concord_events::{DebateEvent, DebateResolved, RoundClosed};
use concord_wire::payload::{Level, Status};

use super::state::{DebateState, Ladder};
use super::strategy;

/// Whether an event may follow the one that resolved the debate.
pub(super) fn may_follow_end(event: &DebateEvent) -> bool {
    matches!(
        event,
        DebateEvent::AnswerSetAside(_)
            | DebateEvent::RulingSetAside(_)
            | DebateEvent::OutcomeKnown(_)
    )
}

/// Whether a debate may wait for nothing but people: at a gate somebody reviews it, and what an
/// operator holds, an operator resumes.
pub(super) fn may_rest(state: &DebateState) -> bool {
    state
        .ladder
        .as_ref()
        .is_some_and(|ladder| ladder.level == Level::Gate || ladder.held.is_some())
}

/// What is wrong with an event that follows `before`.
pub(super) fn misplaced(before: &DebateState, event: &DebateEvent) -> Option<String> {
    if let Some(ladder) = before.ladder.as_deref() {
        return misplaced_on_ladder(before, ladder, event);
    }
    let now = before.round;
    match (event, &before.sync) {
        (DebateEvent::Flushed(_) | DebateEvent::Synced(_), None) if before.opened.is_some() => {
            return Some("Its parties are not awaited.".to_owned());
        }
        (DebateEvent::Answered(_) | DebateEvent::RoundClosed(_), Some(_)) => {
            return Some("Its first round has not begun.".to_owned());
        }
        _ => {}
    }
    match event {
        DebateEvent::RoundClosed(closed) => misplaced_round(now, closed),
        DebateEvent::Resolved(resolved) => misreported_rounds(before, resolved),
        DebateEvent::Answered(answered) if answered.received.round != now => {
            let round = answered.received.round;
            Some(format!(
                "In round {now} it takes an answer into account that belongs to round {round}."
            ))
        }
        _ => None,
    }
}

fn misplaced_round(now: u32, event: &RoundClosed) -> Option<String> {
    let closed = event.record.round;
    let next = event.next_round;
    let max = event.rounds_max;
    let is_next = closed == now && next == now.saturating_add(1) && next <= max;
    (!is_next).then(|| {
        format!("In round {now} of at most {max} it closes round {closed} and begins round {next}.")
    })
}

fn misreported_rounds(before: &DebateState, resolved: &DebateResolved) -> Option<String> {
    let reported: Vec<u32> = resolved
        .outcome
        .rounds
        .iter()
        .map(|round| round.round)
        .collect();
    let has_rounds = before
        .opened
        .as_ref()
        .is_some_and(|opened| strategy::rounds_max(&opened.policy, &opened.terms) > 0);
    // A debate that is cancelled in the middle of a round has not held that round.
    let is_held = has_rounds && resolved.outcome.status != Status::Cancelled;
    let closed = before.rounds.iter().map(|round| round.round);
    let expected: Vec<u32> = closed.chain(is_held.then_some(before.round)).collect();
    (reported != expected)
        .then(|| format!("It reports the rounds {reported:?}; held were {expected:?}."))
}

/// A debate on the ladder never goes back to a lower level, and is not discussed in rounds.
fn misplaced_on_ladder(
    before: &DebateState,
    ladder: &Ladder,
    event: &DebateEvent,
) -> Option<String> {
    let level = ladder.level;
    let to = match event {
        DebateEvent::Escalated(escalated) if escalated.from != level => {
            return Some(format!(
                "On level {level} it leaves level {}.",
                escalated.from
            ));
        }
        DebateEvent::Escalated(escalated) => escalated.to,
        DebateEvent::FellBack(_) => Level::Fallback,
        DebateEvent::AwaitsGate(_) => Level::Gate,
        DebateEvent::Resolved(resolved) if resolved.outcome.rounds != before.rounds => {
            return Some("It reports other rounds than were held.".to_owned());
        }
        DebateEvent::Answered(_)
        | DebateEvent::RoundClosed(_)
        | DebateEvent::Flushed(_)
        | DebateEvent::Synced(_) => {
            return Some(format!("On level {level} a round of discussion goes on."));
        }
        _ => return None,
    };
    (to <= level).then(|| format!("It goes from level {level} to level {to}."))
}
