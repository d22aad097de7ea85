//! The decision log of a case.

use concord_wire::payload::{ConflictOutcome, DecisionChange, Level, LogEntry};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp};

use super::state::CaseState;
use crate::rules::size_budget::truncate;

/// Most items of evidence in one entry. The others are counted; they are in the outcome.
const EVIDENCE_MAX: usize = 8;

/// The entry for an outcome, with the hash of the entry before it. `change` is what the outcome changed in the decision, if it came
/// after it.
pub(super) fn entry(
    state: &CaseState,
    case_id: &CaseId,
    at: Timestamp,
    outcome: &ConflictOutcome,
    change: Option<&DecisionChange>,
) -> Box<LogEntry> {
    let (count, previous) = &state.log;
    let number = count + 1;
    let (evidence, evidence_omitted) = evidence(outcome);
    let ruled_by = outcome.ruled_by.as_ref();
    let entry = LogEntry {
        entry_id: format!("{case_id}-{number}"),
        number,
        at,
        debate_id: outcome.conflict_id.clone(),
        topic: topic(state, &outcome.conflict_id),
        level: outcome.level.unwrap_or(Level::Agents),
        method: outcome.status,
        position: outcome.resolution.clone(),
        confidence: confidence(outcome),
        evidence,
        evidence_omitted,
        impact: impact(state, outcome),
        by: ruled_by.map(|ruled| ruled.expert.clone()),
        first_reviewer: ruled_by.and_then(|ruled| ruled.first_reviewer.clone()),
        key: ruled_by.and_then(|ruled| ruled.key.clone()),
        rationale: ruled_by.map(|ruled| ruled.rationale.clone()),
        provisional: outcome.provisional.clone(),
        decision_version: change.map(|change| change.version),
        replaces_version: change.map(|change| change.replaces),
        previous: previous.clone(),
        hash: String::new(),
    }
    .sealed();
    debug_assert!(
        entry_faults(&entry, *count, previous).is_empty(),
        "a new entry continues the log"
    );
    Box::new(entry)
}

/// The disputed subject of a debate in words; empty for a debate that the case does not know.
pub(super) fn topic(state: &CaseState, debate_id: &DebateId) -> String {
    let conflict = state
        .debated
        .iter()
        .find(|conflict| conflict.conflict_id == *debate_id);
    conflict
        .map(|conflict| truncate::words(&conflict.topic))
        .unwrap_or_default()
}

/// The analyses that rest on what was disputed: those that whoever asked for the debate has named, then those that the facilitator found.
fn impact(state: &CaseState, outcome: &ConflictOutcome) -> Vec<String> {
    let asked = state.asked.get(&outcome.conflict_id);
    let mut impact = asked.map_or_else(Vec::new, |asked| asked.terms.dependants.clone());
    for found in &outcome.dependants {
        if !impact.contains(found) {
            impact.push(found.clone());
        }
    }
    impact
}

/// The evidence of all positions, each item once, and how many items were left out.
fn evidence(outcome: &ConflictOutcome) -> (Vec<String>, u32) {
    let mut evidence: Vec<String> = Vec::new();
    for item in outcome
        .positions
        .iter()
        .flat_map(|position| &position.evidence)
    {
        let item = truncate::words(item);
        if !evidence.contains(&item) {
            evidence.push(item);
        }
    }
    let omitted = evidence.len().saturating_sub(EVIDENCE_MAX);
    evidence.truncate(EVIDENCE_MAX);
    (evidence, u32::try_from(omitted).unwrap_or(u32::MAX))
}

/// The mean confidence of those who support the resolution; none where nobody does.
pub(crate) fn confidence(outcome: &ConflictOutcome) -> Option<f64> {
    let position_of = |agent: &AgentId| {
        outcome
            .positions
            .iter()
            .find(|position| position.agent_id == *agent)
    };
    let supporters = outcome
        .resolution
        .iter()
        .flat_map(|resolution| &resolution.supporters);
    let stated: Vec<f64> = supporters
        .filter_map(position_of)
        .map(|position| position.confidence)
        .collect();
    mean(&stated)
}

/// The faults of an entry, as sentences. `number` and `hash` are those of the entry before; 0 and
/// an empty text for the first entry.
pub fn entry_faults(entry: &LogEntry, number: u64, hash: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if entry.number != number + 1 {
        faults.push(format!(
            "It has the number {} and comes after number {number}.",
            entry.number
        ));
    }
    if entry.previous != hash {
        faults.push("It does not name the hash of the entry before.".to_owned());
    }
    if entry.hash != entry.computed_hash() {
        faults.push("Its hash is not that of its contents.".to_owned());
    }
    faults
}

fn mean(values: &[f64]) -> Option<f64> {
    // Rounded, so that the entry is the same after it was written and read.
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (!values.is_empty()).then(|| (mean * 1e6).round() / 1e6)
}
