//! What operators do: hold, resume and extend deadlines, and cancel.

use concord_events::{Deadline, DeadlineControl, DeadlinesMoved, DebateEvent, DebateOpened};
use concord_wire::payload::{Level, RuledBy, Status};
use concord_wire::{AgentId, Fault};

use super::Ladder;
use crate::aggregates::debate::{DebateState, Resolving};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::size_budget::truncate;

type DebateDecision = Decision<DebateEvent>;

/// Longest extension: a year.
const EXTENSION_MAX_MS: u64 = 365 * 86_400_000;

/// Moves the deadlines of a debate on the ladder.
pub(crate) fn control(
    state: &DebateState,
    opened: &DebateOpened,
    ladder: &Ladder,
    context: &Context,
    order: (DeadlineControl, u64),
    by: &AgentId,
    why: &str,
) -> DebateDecision {
    if state.outcome.is_some() {
        return Decision::Reject(Fault::invalid(
            "",
            "The debate is resolved; it has no deadlines.",
            "Nothing is to be done.",
        ));
    }
    let later = |deadlines: &[Deadline], ms: u64| -> Vec<Deadline> {
        deadlines
            .iter()
            .map(|one| Deadline {
                name: one.name.clone(),
                due: one.due.plus_millis(ms),
            })
            .collect()
    };
    let (later_ms, held, waits_for) = match (order, &ladder.held) {
        ((DeadlineControl::Hold, _), Some(_)) | ((DeadlineControl::Resume, _), None) => {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        ((DeadlineControl::Hold, _), None) => (0, ladder.waits_for.clone(), Vec::new()),
        ((DeadlineControl::Resume, _), Some((held, since))) => {
            let ms = context.now.millis_since(*since);
            (ms, Vec::new(), later(held, ms))
        }
        ((DeadlineControl::Extend, ms), held) => {
            if !(1..=EXTENSION_MAX_MS).contains(&ms) {
                return Decision::Reject(Fault::invalid(
                    "/later_ms",
                    format!("Deadlines cannot be extended by {ms} ms."),
                    format!("Give 1 to {EXTENSION_MAX_MS}."),
                ));
            }
            let held = held
                .as_ref()
                .map_or_else(Vec::new, |(held, _)| later(held, ms));
            (ms, held, later(&ladder.waits_for, ms))
        }
    };
    Decision::Append(DebateEvent::DeadlinesMoved(DeadlinesMoved {
        case_id: opened.case_id.clone(),
        control: order.0,
        by: by.clone(),
        why: truncate::words(why),
        later_ms,
        held,
        waits_for,
    }))
}

/// Ends a debate without a result.
pub(crate) fn cancel(
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
        rationale: truncate::words(why),
        digest: None,
    };
    Decision::Append(
        Resolving::of(opened, Status::Cancelled, level, None)
            .ruled(ruled)
            .event(state, context),
    )
}
