//! The decision of a case: findings where they agree, resolutions where they conflict.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use concord_events::{CaseOpened, ReceivedFinding};
use concord_wire::payload::{
    ClauseOutcome, ConflictOutcome, ConflictType, Decision, FindingReference, Outcome, Severity,
    Status,
};
use concord_wire::policy::Policy;
use serde_json::Value;

use super::dispute::{clause_disputes, dispute, replaced};
use super::state::CaseState;
use crate::rules::RULES;
use crate::rules::canonical::normalise;
use crate::rules::conflict_type::{
    RECOMMENDATION, RISK_SCORE, SEVERITY, contested_clauses, is_abstention, presence,
    recommendation_word, score, severity as read_severity,
};
use crate::rules::names;
use crate::rules::size_budget::{self, CLAUSES_BYTES_MAX, json_bytes};

/// The reason why a case has ended that was not cut short.
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
    decision_by(state.rules.unwrap_or(RULES), state, opened, reason)
}

/// The decision that followed from the state by the rules of another version.
pub(super) fn decision_by(
    rules: u32,
    state: &CaseState,
    opened: &CaseOpened,
    reason: &str,
) -> Decision {
    let findings = by_agent(state)
        .into_iter()
        .map(|received| FindingReference {
            agent_id: received.agent_id.clone(),
            message_id: received.message_id.clone(),
            confidence: received.confidence,
        });
    let outcomes: Vec<ConflictOutcome> = state
        .debated
        .iter()
        .filter_map(|c| state.outcomes.get(&c.conflict_id))
        .cloned()
        .collect();
    Decision {
        version: state
            .decision
            .as_ref()
            .map_or(1, |current| current.version.max(1) + 1),
        outcome: outcome(rules, state, &opened.policy),
        rules,
        findings: findings.collect(),
        missing: state.missing.clone(),
        set_aside: state
            .set_aside
            .iter()
            .map(|(note, _)| note.clone())
            .collect(),
        conflicts: size_budget::decided_conflicts(&state.debated),
        provisional: outcomes
            .iter()
            .filter(|outcome| outcome.status == Status::Provisional)
            .map(|outcome| outcome.conflict_id.clone())
            .collect(),
        outcomes: size_budget::decided_outcomes(&outcomes),
        open: state.open_debates().cloned().collect(),
        deferred: state.deferred.clone(),
        conflicts_omitted: state.conflicts_omitted,
        gates: gates_ahead(state, opened),
        figures: state.figures.clone(),
        figures_omitted: state.figures_omitted,
        reason: reason.to_owned(),
        policy_digest: opened.policy_digest.clone(),
    }
}

/// The gates that are ahead, in the order in which they are passed.
fn gates_ahead(state: &CaseState, opened: &CaseOpened) -> Vec<String> {
    let named = opened.gates.get(state.gates_passed..).unwrap_or_default();
    if named.is_empty() {
        return state.gate().map(str::to_owned).into_iter().collect();
    }
    named.to_vec()
}

/// The findings in the order of their senders: a sum of floating point numbers depends on the
/// order.
fn by_agent(state: &CaseState) -> Vec<&ReceivedFinding> {
    let mut findings: Vec<_> = state.findings.iter().collect();
    findings.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    findings
}

fn outcome(rules: u32, state: &CaseState, policy: &Policy) -> Outcome {
    let state = &*worded(state, policy);
    let (clauses, clauses_omitted) = clauses(rules, state, policy);
    let risk_score = risk_score(rules, state, policy);
    debug_assert!(
        risk_score.is_none_or(f64::is_finite),
        "a score is a number, not {risk_score:?}"
    );
    Outcome {
        risk_score,
        severity: severity(rules, state),
        recommendation: recommendation(rules, state, policy),
        clauses,
        clauses_omitted,
    }
}

/// The state with its findings in the words of the policy's vocabulary, as their conflicts are.
fn worded<'s>(state: &'s CaseState, policy: &Policy) -> Cow<'s, CaseState> {
    match names::worded(&policy.vocabulary, &state.scored, &state.findings).findings {
        Cow::Borrowed(_) => Cow::Borrowed(state),
        Cow::Owned(findings) => Cow::Owned(CaseState {
            findings,
            ..state.clone()
        }),
    }
}

/// The highest that stands. By the rules before 1 it was the highest stated, whatever a challenge of it led to.
fn severity(rules: u32, state: &CaseState) -> Option<Severity> {
    let standing = state.findings.iter().filter_map(|received| {
        let stated = received.finding.severity?;
        if rules < 1 {
            return Some(stated);
        }
        let replaced = replaced(rules, state, &received.agent_id, SEVERITY, read_severity);
        Some(replaced.unwrap_or(stated))
    });
    standing.max()
}

fn risk_score(rules: u32, state: &CaseState, policy: &Policy) -> Option<f64> {
    if let Some(dispute) = dispute(
        rules,
        state,
        ConflictType::RiskScoreDisagreement,
        RISK_SCORE,
    ) {
        return dispute.result(policy, score).0;
    }
    let scored: Vec<(f64, f64)> = by_agent(state)
        .into_iter()
        .filter_map(|received| {
            let stated = received.finding.risk_score?;
            let replaced = replaced(rules, state, &received.agent_id, RISK_SCORE, score);
            // By the rules before 2 confirmations that count weighed in debates alone.
            let confidence = match rules {
                0 | 1 => received.confidence,
                _ => state.confidence(received),
            };
            Some((replaced.unwrap_or(stated), confidence))
        })
        .collect();
    let weight: f64 = scored.iter().map(|(_, confidence)| confidence).sum();
    if weight > 0.0 {
        // The mean as its distance from the first score, so that the mean of equal scores is that score. By the rules before 1 the mean
        // of 86 alone was 85.99999999999999.
        let from = match scored.first() {
            Some((first, _)) if rules >= 1 => *first,
            _ => 0.0,
        };
        let distances = scored
            .iter()
            .map(|(score, confidence)| (score - from) * confidence);
        return Some(from + distances.sum::<f64>() / weight);
    }
    // No agent is confident of anything: the highest score is the cautious one.
    scored
        .iter()
        .map(|(score, _)| *score)
        .max_by(f64::total_cmp)
}

fn recommendation(rules: u32, state: &CaseState, policy: &Policy) -> Option<String> {
    let read = |value: &Value| {
        value
            .as_str()
            .map(|words| recommendation_word(policy, words))
            .filter(|words| !words.is_empty())
    };
    if let Some(dispute) = dispute(
        rules,
        state,
        ConflictType::RecommendationConflict,
        RECOMMENDATION,
    ) {
        return dispute.result(policy, read).0;
    }
    let stated = by_agent(state).into_iter().filter_map(|received| {
        let stated = received.finding.recommendation.as_deref()?;
        let replaced = replaced(rules, state, &received.agent_id, RECOMMENDATION, read);
        Some(replaced.unwrap_or_else(|| normalise(stated))).filter(|words| !words.is_empty())
    });
    let stated: Vec<String> = stated.collect();
    // By the rules before 2 whoever could not tell recommended that.
    let recommends = |words: &&String| rules < 2 || !is_abstention(policy, words);
    let first = stated.iter().find(recommends).or(stated.first());
    first.cloned()
}

/// The outcome for each clause type, under the name that the first finding uses, and the number of
/// clauses that were left out.
fn clauses(
    rules: u32,
    state: &CaseState,
    policy: &Policy,
) -> (BTreeMap<String, ClauseOutcome>, u32) {
    let mut named: BTreeMap<String, (&str, bool)> = BTreeMap::new();
    for received in by_agent(state) {
        let stated = received
            .finding
            .clauses
            .iter()
            .map(|clause| (clause.kind.as_str(), clause.present));
        let relied_on = received
            .finding
            .affected_clauses
            .iter()
            .map(|name| (name.as_str(), true));
        for (name, present) in stated.chain(relied_on) {
            let subject = normalise(name);
            let present =
                replaced(rules, state, &received.agent_id, &subject, presence).unwrap_or(present);
            let (_, found) = named.entry(subject).or_insert((name, false));
            *found |= present;
        }
    }
    let disputes = clause_disputes(rules, state);
    // A conflict that was left out for want of room makes its clause disputed all the same.
    let contested = if state.conflicts_omitted > 0 {
        contested_clauses(&state.findings)
    } else {
        BTreeSet::new()
    };
    let outcomes = named.into_iter().map(|(subject, (name, found))| {
        let (present, basis) = match disputes.get(&subject) {
            Some(dispute) => {
                let (present, basis) = dispute.result(policy, presence);
                (present.unwrap_or(false), basis)
            }
            None if contested.contains(&subject) => (false, "deferred"),
            None => (found, UNDISPUTED),
        };
        (
            name,
            ClauseOutcome {
                present,
                basis: basis.into(),
            },
        )
    });
    with_room(outcomes.collect())
}

const UNDISPUTED: &str = "undisputed";

/// As many clauses as there is room for, the disputed ones first, and the number of the others.
fn with_room(outcomes: Vec<(&str, ClauseOutcome)>) -> (BTreeMap<String, ClauseOutcome>, u32) {
    let (undisputed, disputed): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|(_, outcome)| outcome.basis == UNDISPUTED);
    let (mut kept, mut left, mut omitted) = (BTreeMap::new(), CLAUSES_BYTES_MAX, 0_u32);
    for (name, outcome) in disputed.into_iter().chain(undisputed) {
        let rest = left
            .checked_sub(json_bytes(&name) + json_bytes(&outcome) + 2)
            .filter(|_| omitted == 0);
        if let Some(rest) = rest {
            left = rest;
            kept.insert(name.to_owned(), outcome);
        } else {
            omitted = omitted.saturating_add(1);
        }
    }
    (kept, omitted)
}
