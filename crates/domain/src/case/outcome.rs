//! The result of a case: findings where they agree, resolutions where they did not.

use std::collections::BTreeMap;

use concord_protocol::event::CaseOpened;
use concord_protocol::payload::{
    ClauseOutcome, Conflict, ConflictOutcome, ConflictType, Decision, FindingReference, Outcome, Status,
};
use concord_protocol::policy::Policy;
use serde_json::Value;

use super::state::CaseState;
use crate::caution;
use crate::compare::normalise;

/// Why a case that was not cut short has ended.
pub(super) fn end_reason(state: &CaseState) -> &'static str {
    if state.findings.is_empty() {
        "no_finding"
    } else if state.debated.is_empty() {
        "no_conflict"
    } else {
        "settled"
    }
}

/// The decision that follows from the state.
pub(super) fn decision(state: &CaseState, opened: &CaseOpened, reason: &str) -> Decision {
    let mut findings: Vec<FindingReference> = state
        .findings
        .iter()
        .map(|received| FindingReference {
            agent_id: received.agent_id.clone(),
            message_id: received.message_id.clone(),
            confidence: received.confidence,
        })
        .collect();
    findings.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    Decision {
        outcome: outcome(state, &opened.policy),
        findings,
        missing: state.missing.clone(),
        set_aside: state.set_aside.iter().map(|(note, _)| note.clone()).collect(),
        conflicts: state.debated.clone(),
        outcomes: state.debated.iter().filter_map(|c| state.outcomes.get(&c.conflict_id)).cloned().collect(),
        deferred: state.deferred.clone(),
        reason: reason.to_owned(),
        policy_digest: opened.policy_digest.clone(),
    }
}

fn outcome(state: &CaseState, policy: &Policy) -> Outcome {
    Outcome {
        risk_score: risk_score(state, policy),
        severity: state.findings.iter().filter_map(|received| received.finding.severity).max(),
        recommendation: recommendation(state, policy),
        clauses: clauses(state, policy),
    }
}

/// A conflict about a subject with what became of it.
fn dispute<'a>(state: &'a CaseState, kind: ConflictType, subject: &str) -> Option<Dispute<'a>> {
    let of_subject = |conflict: &&Conflict| conflict.kind == kind && normalise(&conflict.subject) == subject;
    if let Some(conflict) = state.debated.iter().find(of_subject) {
        return Some(Dispute { conflict, outcome: state.outcomes.get(&conflict.conflict_id), deferred: false });
    }
    let conflict = state.deferred.iter().find(of_subject)?;
    Some(Dispute { conflict, outcome: None, deferred: true })
}

struct Dispute<'a> {
    conflict: &'a Conflict,
    outcome: Option<&'a ConflictOutcome>,
    deferred: bool,
}

impl Dispute<'_> {
    /// The resolved value; where the dispute is open, the most cautious position.
    fn value(&self, policy: &Policy) -> Option<Value> {
        let resolved = self.outcome.and_then(|outcome| outcome.resolution.as_ref()?.value.clone());
        resolved.or_else(|| {
            let values = self.conflict.positions.iter().filter_map(|position| position.value.as_ref());
            values.max_by(|a, b| caution::compare(self.conflict.kind, policy, Some(a), Some(b))).cloned()
        })
    }

    fn basis(&self) -> &'static str {
        match self.outcome.map(|outcome| outcome.status) {
            Some(Status::Discussion) => "discussion",
            Some(Status::Vote) => "vote",
            None if self.deferred => "deferred",
            Some(Status::Unresolved) | None => "unresolved",
        }
    }
}

fn risk_score(state: &CaseState, policy: &Policy) -> Option<f64> {
    if let Some(dispute) = dispute(state, ConflictType::RiskScoreDisagreement, "risk_score") {
        return dispute.value(policy)?.as_f64();
    }
    let scored: Vec<(f64, f64)> = state
        .findings
        .iter()
        .filter_map(|received| Some((received.finding.risk_score?, received.confidence)))
        .collect();
    let weight: f64 = scored.iter().map(|(_, confidence)| confidence).sum();
    if weight > 0.0 {
        return Some(scored.iter().map(|(score, confidence)| score * confidence).sum::<f64>() / weight);
    }
    // Nobody is sure of anything: the highest score is the cautious one.
    scored.iter().map(|(score, _)| *score).max_by(f64::total_cmp)
}

fn recommendation(state: &CaseState, policy: &Policy) -> Option<String> {
    if let Some(dispute) = dispute(state, ConflictType::RecommendationConflict, "recommendation") {
        return dispute.value(policy)?.as_str().map(str::to_owned);
    }
    state.findings.iter().find_map(|received| received.finding.recommendation.as_deref().map(normalise))
}

fn clauses(state: &CaseState, policy: &Policy) -> BTreeMap<String, ClauseOutcome> {
    let mut clauses: BTreeMap<String, ClauseOutcome> = BTreeMap::new();
    let mut findings: Vec<_> = state.findings.iter().collect();
    findings.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    for received in findings {
        let stated = received.finding.clauses.iter().map(|clause| (clause.kind.as_str(), clause.present));
        let relied_on = received.finding.affected_clauses.iter().map(|name| (name.as_str(), true));
        for (name, present) in stated.chain(relied_on) {
            clauses.entry(name.to_owned()).or_insert_with(|| {
                let Some(dispute) = dispute(state, ConflictType::ClausePresenceDisagreement, &normalise(name)) else {
                    return ClauseOutcome { present, basis: "undisputed".into() };
                };
                let value = dispute.value(policy).and_then(|value| value.as_bool());
                ClauseOutcome { present: value.unwrap_or(present), basis: dispute.basis().into() }
            });
        }
    }
    clauses
}
