//! Operators hold, resume and extend the deadlines of a debate, and cancel it.

use concord_events::names::{HALF, NEARLY};
use concord_events::{Deadline, DeadlineControl, DeadlinesMoved, DebateEvent, DebateOpened};
use concord_wire::payload::{Calendar, Level, RuledBy, Status};
use concord_wire::{AgentId, Fault, Timestamp};

use super::OnLadder;
use crate::aggregates::debate::outcome_builder::OutcomeBuilder;
use crate::aggregates::debate::state::DebateState;
use crate::machine::{Context, Decision, Ignored};
use crate::rules::calendar;
use crate::rules::size_budget::truncate;

type DebateDecision = Decision<DebateEvent>;

/// The longest extension in milliseconds: a year.
const EXTENSION_MAX_MS: u64 = 365 * 86_400_000;

/// Holds, resumes or extends the deadlines of a debate on the ladder; `extend_by_ms` counts for an
/// extension only.
pub(in crate::aggregates::debate) fn control(
    on: &OnLadder<'_>,
    control: DeadlineControl,
    extend_by_ms: u64,
    by: &AgentId,
    why: &str,
) -> DebateDecision {
    if on.is_resolved() {
        return Decision::Reject(Fault::invalid(
            "",
            "The debate is resolved; it has no deadlines.",
            "Nothing is to be done.",
        ));
    }
    let (later_ms, held, waits_for) = match (control, &on.ladder.held) {
        (DeadlineControl::Hold, Some(_)) | (DeadlineControl::Resume, None) => {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        (DeadlineControl::Hold, None) => (0, on.ladder.waits_for.clone(), Vec::new()),
        (DeadlineControl::Resume, Some((held, since))) => {
            // A deadline that fell due while it was held has elapsed, and does not elapse twice. The new one is another,
            // also where the clock of this process is behind that of the one that held it.
            let ms = on.context.now.millis_since(*since).max(1);
            (
                ms,
                Vec::new(),
                moved(held, |one| resumed(on, one.due, *since)),
            )
        }
        (DeadlineControl::Extend, _) if !(1..=EXTENSION_MAX_MS).contains(&extend_by_ms) => {
            return Decision::Reject(Fault::invalid(
                "/later_ms",
                format!("Deadlines cannot be extended by {extend_by_ms} ms."),
                format!("Give 1 to {EXTENSION_MAX_MS}."),
            ));
        }
        (DeadlineControl::Extend, held) => {
            let held = held.as_ref().map_or_else(Vec::new, |(held, _)| {
                moved(held, |one| extended(on, one, extend_by_ms))
            });
            let open = moved(&on.ladder.waits_for, |one| extended(on, one, extend_by_ms));
            (extend_by_ms, held, open)
        }
    };
    debug_assert!(
        held.is_empty() || waits_for.is_empty(),
        "no deadline is open while others are held"
    );
    Decision::Append(DebateEvent::DeadlinesMoved(DeadlinesMoved {
        case_id: on.opened.case_id.clone(),
        control,
        by: by.clone(),
        why: truncate::words(why),
        later_ms,
        held,
        waits_for,
    }))
}

fn moved(deadlines: &[Deadline], due: impl Fn(&Deadline) -> Timestamp) -> Vec<Deadline> {
    deadlines
        .iter()
        .map(|one| Deadline {
            name: one.name.clone(),
            due: due(one),
        })
        .collect()
}

/// The hours in which the debate's time runs: level 3 alone keeps any.
fn hours<'a>(on: &OnLadder<'a>) -> Option<&'a Calendar> {
    let ladder = &on.opened.policy.ladder;
    ladder
        .working_hours()
        .filter(|_| on.ladder.level == Level::Person)
}

/// When a deadline is due that is held since then: as much time as was left then, from now on.
fn resumed(on: &OnLadder<'_>, due: Timestamp, since: Timestamp) -> Timestamp {
    let now = on.context.now;
    let Some(hours) = hours(on) else {
        return due.plus_millis(now.millis_since(since).max(1));
    };
    let left = calendar::open_millis(since, due, Some(hours));
    calendar::due(now, left, Some(hours)).max(due.plus_millis(1))
}

/// When a deadline is due after an extension, of which a reminder gets the share that it had of the whole time.
fn extended(on: &OnLadder<'_>, one: &Deadline, by_ms: u64) -> Timestamp {
    let tenths = match one.name.as_str() {
        HALF => 5,
        NEARLY => 9,
        _ => 10,
    };
    calendar::due(
        one.due,
        by_ms / 10 * tenths + by_ms % 10 * tenths / 10,
        hours(on),
    )
}

/// Ends a debate without a result.
pub(in crate::aggregates::debate) fn cancel(
    state: &DebateState,
    opened: &DebateOpened,
    context: &Context,
    by: &AgentId,
    why: &str,
) -> DebateDecision {
    if state.outcome.is_some() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let level = state
        .ladder
        .as_ref()
        .map_or(Level::Agents, |ladder| ladder.level);
    let ruled = RuledBy {
        expert: by.clone(),
        first_reviewer: None,
        first_rationale: None,
        rationale: truncate::words(why),
        digest: None,
        key: None,
    };
    Decision::Append(
        OutcomeBuilder::new(opened, Status::Cancelled, level, None)
            .ruled_by(ruled)
            .event(state, context),
    )
}
