//! Phase 3: the five rules that find conflicts among findings, and the order in which conflicts are debated.
//!
//! Each rule is a function from findings to conflicts. A conflict's weight is the stake of its type times how
//! contested it is: the highest confidence behind the second strongest position. Conflicts are ranked by weight, then
//! by type in the order of [`ConflictType`], then by subject, so the order never depends on who answered first.
//!
//! Findings may conflict in tens of thousands of points. Only those are kept for which a fact has room ([`crate::rules::size_budget`]);
//! the others are counted.

use concord_events::ReceivedFinding;
use concord_wire::CaseId;
use concord_wire::payload::{Conflict, ConflictType, Position};
use concord_wire::policy::Policy;
use serde_json::Value;

use crate::rules::size_budget::truncate::{self, Room};
use crate::rules::size_budget::{
    DEBATED_BYTES_MAX, DEFERRED_BYTES_MAX, count, fitting, json_bytes,
};

mod clause_presence;
mod factual;
mod ranking;
mod recommendation;
mod risk_score;
mod severity;

pub(crate) use clause_presence::contested as contested_clauses;
use ranking::{Ranked, Ranking};

/// The conflicts of a case, in ranking order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conflicts {
    /// Those that are debated under the policy's limit.
    pub debated: Vec<Conflict>,
    /// Those beyond it.
    pub deferred: Vec<Conflict>,
    /// How many more there are, for which a fact has no room.
    pub omitted: u32,
}

/// A conflict as a rule finds it, before it has an id and a weight.
struct Found<'a> {
    kind: ConflictType,
    topic: String,
    subject: String,
    /// How much hangs on it, 0 to 1.
    stake: f64,
    /// What each party holds, ordered by agent id.
    held: Vec<Held<'a>>,
}

/// What one party holds.
struct Held<'a> {
    /// Without evidence and reasoning: how much of them there is room for is not known yet.
    position: Position,
    /// What the position rests on.
    received: &'a ReceivedFinding,
    /// What the finding says about this very point; it comes before the finding's evidence.
    words: Vec<&'a str>,
}

impl Held<'_> {
    /// The position with as much of the finding's evidence as there is room for.
    fn with_room(&self, room: Room) -> Position {
        let finding = &self.received.finding;
        let evidence = self
            .words
            .iter()
            .copied()
            .chain(finding.evidence.iter().map(String::as_str));
        let support = truncate::support(Some(&finding.summary), evidence, room);
        Position {
            evidence: support.evidence,
            reasoning: support.reasoning,
            evidence_omitted: support.omitted,
            ..self.position.clone()
        }
    }
}

/// A party's position about one point.
fn held<'a>(
    received: &'a ReceivedFinding,
    text: &str,
    value: &Value,
    words: Vec<&'a str>,
) -> Held<'a> {
    let position = Position {
        agent_id: received.agent_id.clone(),
        position: truncate::words(text),
        value: Some(truncate::value(value)),
        confidence: received.confidence,
        evidence: Vec::new(),
        reasoning: None,
        evidence_omitted: 0,
    };
    Held {
        position,
        received,
        words,
    }
}

/// The conflicts among the findings of a case: as many debated as the policy allows and a fact has room for.
pub fn detect_within_limit(
    case: &CaseId,
    policy: &Policy,
    findings: &[ReceivedFinding],
) -> Conflicts {
    let mut sorted: Vec<&ReceivedFinding> = findings.iter().collect();
    sorted.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let limit = usize::try_from(policy.conflicts_max).unwrap_or(usize::MAX);
    let mut ranking = Ranking::new(case, policy, limit.saturating_add(LISTED_MAX));
    for rule in [
        recommendation::find,
        risk_score::find,
        severity::find,
        clause_presence::find,
        factual::find,
    ] {
        rule(policy, &sorted, &mut ranking);
    }
    let (ranked, left_out) = ranking.finish();
    let debated = debated(&ranked, limit);
    let rest = ranked.get(debated.len()..).unwrap_or_default();
    let deferred = deferred(rest);
    let omitted = left_out.saturating_add(count(rest.len() - deferred.len()));
    Conflicts {
        debated,
        deferred,
        omitted,
    }
}

/// Most deferred conflicts that are looked at again: there is room for fewer, however small they are.
const LISTED_MAX: usize = 512;

/// The first conflicts: all that the policy allows with less evidence, rather than fewer with more.
fn debated(ranked: &[Ranked<'_>], limit: usize) -> Vec<Conflict> {
    let limit = limit.min(ranked.len());
    let make = |place: usize, room| ranked.get(place).map(|ranked| ranked.with_room(room));
    fitting(limit, DEBATED_BYTES_MAX, make)
        .unwrap_or_else(|| without_evidence(ranked.iter(), DEBATED_BYTES_MAX))
}

/// The others, as far as there is room. What the result of the case depends on most comes first.
fn deferred(ranked: &[Ranked<'_>]) -> Vec<Conflict> {
    let make = |place: usize, room| ranked.get(place).map(|ranked| ranked.with_room(room));
    if let Some(all) = fitting(ranked.len(), DEFERRED_BYTES_MAX, make) {
        return all;
    }
    let (first, others): (Vec<_>, Vec<_>) = ranked
        .iter()
        .partition(|ranked| ranked.is_about_the_result());
    let mut kept = without_evidence(first.into_iter().chain(others), DEFERRED_BYTES_MAX);
    kept.sort_by(ranking::order);
    kept
}

/// As many as there is room for without evidence, in this order.
fn without_evidence<'r, 'a: 'r>(
    ranked: impl Iterator<Item = &'r Ranked<'a>>,
    bytes_max: usize,
) -> Vec<Conflict> {
    let mut left = bytes_max;
    let fits = |conflict: &Conflict| {
        let rest = left.checked_sub(json_bytes(conflict) + 1);
        rest.inspect(|rest| left = *rest).is_some()
    };
    ranked
        .map(|ranked| ranked.with_room(Room::NONE))
        .take_while(fits)
        .collect()
}

#[cfg(test)]
mod tests;
