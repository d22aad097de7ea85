//! How a case comes to its decision: by the conflicts that were detected, the outcomes of their
//! debates, or its deadline.

use concord_events::{
    CaseEvent, CaseOpened, ConflictsReceived, DeadlineElapsed, DebateSettled, Decided,
    DecisionAwaited, Detected,
};
use concord_wire::payload::{Conflict, ConflictOutcome, LogEntry, Status};
use concord_wire::policy::Decide;
use concord_wire::{CaseId, DebateId, Fault};

use super::membership::told_alone;
use super::state::{CaseState, Phase};
use super::{log, outcome, version};
use crate::machine::{Context, Decision, Ignored};
use crate::rules::{RULES, conflict, names, size_budget};

type CaseDecision = Decision<CaseEvent>;

pub(super) fn detected(
    state: &CaseState,
    opened: &CaseOpened,
    detected: &Detected,
) -> CaseDecision {
    match state.phase {
        Phase::Detecting => {}
        Phase::Deliberating | Phase::Decided | Phase::Cancelled => {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        // These conflicts cannot be those of this case: its findings are not complete.
        Phase::New | Phase::Collecting => {
            return Decision::Reject(Fault::invalid(
                "/case_id",
                "The findings of this case are still being collected.",
                "Look for conflicts when the findings are closed.",
            ));
        }
    }
    let debated: Vec<Conflict> = detected
        .debated
        .iter()
        .chain(&state.debated)
        .cloned()
        .collect();
    if all_settled(state, &debated, None) {
        let after = CaseState {
            debated,
            deferred: detected.deferred.clone(),
            conflicts_omitted: detected.conflicts_omitted,
            scored: names::scored_in(&detected.names),
            ..state.clone()
        };
        return Decision::Append(decided(&after, opened, None, outcome::end_reason(&after)));
    }
    Decision::Append(CaseEvent::ConflictsReceived(ConflictsReceived {
        debated: detected.debated.clone(),
        deferred: detected.deferred.clone(),
        conflicts_omitted: detected.conflicts_omitted,
        scored: names::scored_in(&detected.names),
    }))
}

pub(super) fn resolved(
    state: &CaseState,
    context: &Context,
    case_id: &CaseId,
    opened: &CaseOpened,
    outcome: &ConflictOutcome,
) -> CaseDecision {
    // A final outcome replaces a provisional one. Nothing else is replaced, and nothing in a case that is cancelled.
    let is_new = state.phase != Phase::Cancelled
        && state
            .outcomes
            .get(&outcome.conflict_id)
            .is_none_or(|known| {
                known.status == Status::Provisional && outcome.status != Status::Provisional
            });
    if !is_new {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let outcome = &size_budget::case_outcome(outcome, opened.policy.conflicts_max);
    if let Some(changed) = version::changed(state, opened, case_id, context.now, outcome) {
        return Decision::Append(changed);
    }
    let entry = log::entry(state, case_id, context.now, outcome, None);
    if state.phase == Phase::Deliberating
        && all_settled(state, &state.debated, Some(&outcome.conflict_id))
    {
        let mut after = state.clone();
        after
            .outcomes
            .insert(outcome.conflict_id.clone(), outcome.clone());
        let last = Some((outcome.clone(), entry));
        return Decision::Append(decided(&after, opened, last, outcome::end_reason(&after)));
    }
    Decision::Append(CaseEvent::DebateSettled(DebateSettled {
        outcome: outcome.clone(),
        entry: Some(entry),
        concluded_for: told_alone(opened, outcome),
    }))
}

/// The state from which a case is decided whose time is over. Where conflicts were not detected
/// yet, they are detected here, so that a conflict leads to the cautious position and not to the
/// first finding.
fn cut_short(state: &CaseState, opened: &CaseOpened, deadline: &DeadlineElapsed) -> CaseState {
    let mut state = state.clone();
    if state.phase == Phase::Collecting {
        state.missing = state.awaited(opened, None);
    }
    if let (Phase::Collecting | Phase::Detecting, Ok(case_id)) =
        (state.phase, CaseId::new(deadline.id.as_str()))
    {
        let rules = state.rules.unwrap_or(RULES);
        let findings = state.compared_findings();
        let found = conflict::detect_by(rules, &case_id, &opened.policy, &[], &findings);
        // Challenges go on, whether or not the case is decided.
        state.debated.splice(0..0, found.debated);
        (state.deferred, state.conflicts_omitted) = (found.deferred, found.omitted);
    }
    state
}

/// Whether each of these conflicts has its outcome, once the debate `now` has ended too.
fn all_settled(state: &CaseState, debated: &[Conflict], now: Option<&DebateId>) -> bool {
    let is_settled = |id: &DebateId| now == Some(id) || state.outcomes.contains_key(id);
    debated
        .iter()
        .all(|conflict| is_settled(&conflict.conflict_id))
}

fn decided(
    state: &CaseState,
    opened: &CaseOpened,
    last: Option<(ConflictOutcome, Box<LogEntry>)>,
    reason: &str,
) -> CaseEvent {
    debug_assert!(state.decision.is_none(), "a case is decided once");
    let (last, entry) = last.unzip();
    let concluded_for = last.as_ref().map(|outcome| told_alone(opened, outcome));
    let concluded_for = concluded_for.unwrap_or_default();
    // A case that deliberates has recorded them.
    let scored = if state.phase == Phase::Detecting {
        state.scored.clone()
    } else {
        Vec::new()
    };
    CaseEvent::Decided(Box::new(Decided {
        last,
        entry,
        concluded_for,
        scored,
        decision: outcome::decision(state, opened, reason),
    }))
}

/// What happens to a case whose time is over: it is decided with what there is, or waits for its debates.
pub(super) fn timed_out(
    state: &CaseState,
    opened: &CaseOpened,
    deadline: &DeadlineElapsed,
) -> CaseEvent {
    if opened.policy.decide == Decide::WhenSettled {
        return CaseEvent::DecisionAwaited(DecisionAwaited {
            open: state.open_debates().cloned().collect(),
        });
    }
    decided(&cut_short(state, opened, deadline), opened, None, "timeout")
}
