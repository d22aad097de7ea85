//! Phase 3: the five rules that find conflicts among findings, and the order in which conflicts are debated.
//!
//! Each rule is a function from findings to conflicts. A conflict's weight is the stake of its type times how
//! contested it is: the highest confidence behind the second strongest position. Conflicts are ranked by weight, then
//! by type in the order of [`ConflictType`], then by subject, so the order never depends on who answered first.

use concord_protocol::event::ReceivedFinding;
use concord_protocol::payload::{Conflict, ConflictType, Position};
use concord_protocol::policy::Policy;
use concord_protocol::{CaseId, DebateId};
use serde_json::Value;

use crate::vote;

mod clause_presence;
mod factual;
mod recommendation;
mod risk_score;
mod severity;

/// A conflict as a rule finds it, before it has an id and a weight.
struct Found {
    kind: ConflictType,
    topic: String,
    subject: String,
    /// How much hangs on it, 0 to 1.
    stake: f64,
    positions: Vec<Position>,
}

/// All conflicts among the findings of a case, ranked.
pub fn detect(case: &CaseId, policy: &Policy, findings: &[ReceivedFinding]) -> Vec<Conflict> {
    let mut sorted: Vec<&ReceivedFinding> = findings.iter().collect();
    sorted.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let rules = [recommendation::find, risk_score::find, severity::find, clause_presence::find, factual::find];
    // Positions that are the same when compared, such as "yes" and "true", leave nothing to debate.
    let disputed = |found: &Found| vote::option_count(found.kind, policy, &found.positions) > 1;
    let found = rules.iter().flat_map(|rule| rule(policy, &sorted)).filter(disputed);
    let mut conflicts: Vec<Conflict> = found.map(|found| ranked(case, policy, found)).collect();
    conflicts.sort_by(|a, b| {
        b.weight.total_cmp(&a.weight).then_with(|| a.kind.cmp(&b.kind)).then_with(|| a.subject.cmp(&b.subject))
    });
    conflicts
}

/// The conflicts that are debated under the policy's limit, and the others.
pub fn detect_within_limit(
    case: &CaseId,
    policy: &Policy,
    findings: &[ReceivedFinding],
) -> (Vec<Conflict>, Vec<Conflict>) {
    let mut debated = detect(case, policy, findings);
    let deferred = debated.split_off(debated.len().min(policy.conflicts_max as usize));
    (debated, deferred)
}

fn ranked(case: &CaseId, policy: &Policy, found: Found) -> Conflict {
    let weight = found.stake * contested(found.kind, policy, &found.positions);
    Conflict {
        conflict_id: DebateId::of_conflict(case, found.kind.as_str(), &found.subject),
        kind: found.kind,
        topic: found.topic,
        subject: found.subject,
        weight: (weight * 1e6).round() / 1e6,
        positions: found.positions,
    }
}

/// The highest confidence behind the second strongest option.
fn contested(kind: ConflictType, policy: &Policy, positions: &[Position]) -> f64 {
    let options = vote::options_of(kind, policy, positions);
    let mut best = vec![0.0_f64; options.iter().max().map_or(0, |last| last + 1)];
    for (option, position) in options.into_iter().zip(positions) {
        if let Some(slot) = best.get_mut(option) {
            *slot = slot.max(position.confidence);
        }
    }
    best.sort_by(|a, b| b.total_cmp(a));
    best.get(1).copied().unwrap_or(0.0)
}

/// A position of the finder, with the finding's evidence.
fn position(received: &ReceivedFinding, text: impl Into<String>, value: Value, evidence: Vec<String>) -> Position {
    Position {
        agent_id: received.agent_id.clone(),
        position: text.into(),
        value: Some(value),
        confidence: received.confidence,
        evidence,
        reasoning: Some(received.finding.summary.clone()),
    }
}

#[cfg(test)]
mod tests;
