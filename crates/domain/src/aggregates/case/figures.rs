//! The figures of analyses that were done again, as a part of the decision.

use std::collections::BTreeMap;

use concord_events::{CaseEvent, CaseOpened, FiguresRecorded};
use concord_wire::Token;
use concord_wire::payload::RecordedFigures;

use super::decide::CaseDecision;
use super::membership::everyone_in;
use super::outcome;
use super::state::{CaseState, Phase};
use crate::aggregates::impact::RunFigures;
use crate::machine::{Decision, Ignored};
use crate::rules::size_budget::json_bytes;

/// Most bytes of all figures in a decision, as JSON.
const FIGURES_BYTES_MAX: usize = 16 * 1024;

/// What to do when a run has ended, of which and of earlier ones these are the figures: what the case has not got yet is part of a new
/// version of its decision. A case that is not decided takes none: its first decision comes later.
pub(super) fn record(
    state: &CaseState,
    opened: &CaseOpened,
    run: u32,
    figures: &BTreeMap<Token, RunFigures>,
) -> CaseDecision {
    let current = state.decision.as_ref();
    let current = current.filter(|_| state.phase == Phase::Decided && run > state.figures_run);
    let of_later = figures
        .iter()
        .filter(|(_, one)| one.run > state.figures_run);
    let new: BTreeMap<Token, RecordedFigures> = of_later
        .map(|(id, one)| (id.clone(), one.recorded.clone()))
        .collect();
    let Some(current) = current.filter(|_| !new.is_empty()) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let mut all = state.figures.clone();
    all.extend(new.clone());
    let (kept, omitted) = with_room(all, &new);
    let changed = new.keys().filter(|id| kept.contains_key(*id));
    let changed = changed.cloned().collect();
    let after = CaseState {
        figures: kept,
        figures_omitted: state.figures_omitted.saturating_add(omitted),
        ..state.clone()
    };
    Decision::Append(CaseEvent::FiguresRecorded(Box::new(FiguresRecorded {
        run,
        changed,
        replaces: current.version,
        decision: outcome::decision(&after, opened, &current.reason),
        told: everyone_in(opened),
    })))
}

/// As many figures as there is room for, the new ones first, and the number of the others.
fn with_room(
    all: BTreeMap<Token, RecordedFigures>,
    new: &BTreeMap<Token, RecordedFigures>,
) -> (BTreeMap<Token, RecordedFigures>, u32) {
    let (first, then): (Vec<_>, Vec<_>) = all.into_iter().partition(|(id, _)| new.contains_key(id));
    let (mut kept, mut left, mut omitted) = (BTreeMap::new(), FIGURES_BYTES_MAX, 0_u32);
    for (id, one) in first.into_iter().chain(then) {
        match left.checked_sub(json_bytes(&id) + json_bytes(&one) + 2) {
            Some(rest) => {
                left = rest;
                kept.insert(id, one);
            }
            None => omitted = omitted.saturating_add(1),
        }
    }
    (kept, omitted)
}
