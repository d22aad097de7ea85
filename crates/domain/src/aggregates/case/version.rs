//! Versions of a decision: what changes when an outcome comes after it.

use std::collections::BTreeSet;

use concord_events::{CaseEvent, CaseOpened, DecisionChanged};
use concord_wire::payload::{
    ChangedPart, ConflictOutcome, Decision, DecisionChange, Level, Outcome,
};
use concord_wire::{CaseId, Timestamp};
use serde_json::{Value, json};

use super::membership::{everyone_in, told_alone};
use super::state::CaseState;
use super::{log, outcome};

/// Most parts that a change names. One outcome changes one or two; more can follow where clauses were left out for want of room.
const PARTS_MAX: usize = 8;

/// The event by which this outcome gives the decision a new version; `None` if the decision stays as it is.
pub(super) fn changed(
    state: &CaseState,
    opened: &CaseOpened,
    case_id: &CaseId,
    at: Timestamp,
    outcome: &ConflictOutcome,
) -> Option<CaseEvent> {
    let current = state.decision.as_ref()?;
    let mut after = state.clone();
    after
        .outcomes
        .insert(outcome.conflict_id.clone(), outcome.clone());
    let decision = outcome::decision(&after, opened, &current.reason);
    if is_same(current, &decision) {
        return None;
    }
    let change = change(state, current, &decision, outcome);
    let entry = log::entry(state, case_id, at, outcome, Some(&change));
    Some(CaseEvent::DecisionChanged(Box::new(DecisionChanged {
        outcome: outcome.clone(),
        entry,
        change,
        decision,
        told: everyone_in(opened),
        concluded_for: told_alone(opened, outcome),
    })))
}

/// Whether two versions say the same. Gates are passed and late findings set aside without a new version.
fn is_same(a: &Decision, b: &Decision) -> bool {
    (&a.outcome, &a.outcomes, &a.conflicts) == (&b.outcome, &b.outcomes, &b.conflicts)
        && (&a.open, &a.provisional) == (&b.open, &b.provisional)
}

fn change(
    state: &CaseState,
    before: &Decision,
    after: &Decision,
    outcome: &ConflictOutcome,
) -> DecisionChange {
    let mut changed = differences(&before.outcome, &after.outcome);
    let omitted = changed.len().saturating_sub(PARTS_MAX);
    changed.truncate(PARTS_MAX);
    DecisionChange {
        version: after.version,
        replaces: before.version,
        debate_id: outcome.conflict_id.clone(),
        topic: log::topic(state, &outcome.conflict_id),
        status: outcome.status,
        level: outcome.level.unwrap_or(Level::Agents),
        by: outcome.ruled_by.as_ref().map(|ruled| ruled.expert.clone()),
        first_reviewer: (outcome.ruled_by.as_ref()).and_then(|ruled| ruled.first_reviewer.clone()),
        changed,
        changed_omitted: u32::try_from(omitted).unwrap_or(u32::MAX),
    }
}

/// The parts in which two results differ.
fn differences(before: &Outcome, after: &Outcome) -> Vec<ChangedPart> {
    let mut parts = Vec::new();
    let mut compare = |part: String, before: Value, after: Value| {
        if before != after {
            parts.push(ChangedPart {
                part,
                before,
                after,
            });
        }
    };
    compare(
        "risk_score".into(),
        json!(before.risk_score),
        json!(after.risk_score),
    );
    compare(
        "severity".into(),
        json!(before.severity),
        json!(after.severity),
    );
    compare(
        "recommendation".into(),
        json!(before.recommendation),
        json!(after.recommendation),
    );
    let names: BTreeSet<&String> = before.clauses.keys().chain(after.clauses.keys()).collect();
    for name in names {
        let present = |of: &Outcome| json!(of.clauses.get(name).map(|clause| clause.present));
        compare(format!("clauses/{name}"), present(before), present(after));
    }
    parts
}

/// What is wrong with the decision of this state: it does not say what the outcomes give.
pub(super) fn recount(after: &CaseState) -> Vec<String> {
    let (Some(opened), Some(decision)) = (after.opened.as_deref(), &after.decision) else {
        return Vec::new();
    };
    let again = outcome::decision_by(decision.rules, after, opened, &decision.reason);
    let mut faults = Vec::new();
    if again.outcome != decision.outcome {
        faults.push(format!(
            "Version {} of the decision says {}, and its resolutions give {}.",
            decision.version,
            json!(decision.outcome),
            json!(again.outcome)
        ));
    }
    if (&again.open, &again.provisional) != (&decision.open, &decision.provisional) {
        faults.push(format!(
            "Version {} of the decision names other debates as open or provisional than there are.",
            decision.version
        ));
    }
    faults
}
