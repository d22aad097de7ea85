//! Phase 3: detects the conflicts among the findings of a case, and ranks them for debate.
//!
//! The rules by which conflicts are found are in [`conflict_type`](crate::rules::conflict_type). A
//! conflict's weight is the stake of its type times how contested it is: the highest confidence
//! behind the second strongest position. Conflicts are ranked by weight, then by type in the order
//! of [`ConflictType`], then by subject, so the order never depends on who answered first.
//!
//! Findings may conflict in tens of thousands of points. Only those are kept for which an event has
//! room ([`size_budget`](crate::rules::size_budget)); the others are counted.

use std::cmp::Ordering;

use concord_events::{IncomparableEstimates, NameMatch, ReceivedFinding};
use concord_wire::CaseId;
use concord_wire::payload::{Conflict, ConflictType};
use concord_wire::policy::Policy;

use crate::rules::RULES;
use crate::rules::conflict_type::{incomparable_estimates, is_abstention, rule_of};
use crate::rules::names;
use crate::rules::size_budget::truncate::Room;
use crate::rules::size_budget::{
    DEBATED_BYTES_MAX, DEFERRED_BYTES_MAX, INCOMPARABLE_BYTES_MAX, count, fitting, json_bytes,
};

mod ranking;

use ranking::{Ranked, Ranking};

/// The conflicts of a case, in ranking order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conflicts {
    /// The conflicts within the policy's limit. They are debated.
    pub debated: Vec<Conflict>,
    /// The conflicts beyond the limit.
    pub deferred: Vec<Conflict>,
    /// How many more there are, for which an event has no room.
    pub omitted: u32,
    /// Estimates in units that cannot be converted into each other, by subject.
    pub incomparable: Vec<IncomparableEstimates>,
    /// How many more of these there are, for which an event has no room.
    pub incomparable_omitted: u32,
    /// Names in the findings that were taken for words of the policy's vocabulary.
    pub names: Vec<NameMatch>,
    /// How many more of these there are, for which an event has no room.
    pub names_omitted: u32,
}

/// The conflicts among the findings of a case: as many debated as the policy allows and an event
/// has room for.
pub fn detect_within_limit(
    case: &CaseId,
    policy: &Policy,
    findings: &[ReceivedFinding],
) -> Conflicts {
    detect_scored(case, policy, &[], findings)
}

/// The same, where the sentence model has taken these names for words of the policy's vocabulary.
pub fn detect_scored(
    case: &CaseId,
    policy: &Policy,
    scored: &[NameMatch],
    findings: &[ReceivedFinding],
) -> Conflicts {
    detect_by(RULES, case, policy, scored, findings)
}

/// The same by the rules of another version.
pub fn detect_by(
    rules: u32,
    case: &CaseId,
    policy: &Policy,
    scored: &[NameMatch],
    findings: &[ReceivedFinding],
) -> Conflicts {
    let worded = names::worded(&policy.vocabulary, scored, findings);
    let mut sorted: Vec<&ReceivedFinding> = worded.findings.iter().collect();
    sorted.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    let limit = usize::try_from(policy.conflicts_max).unwrap_or(usize::MAX);
    let mut ranking = Ranking::new(case, policy, limit.saturating_add(LISTED_MAX));
    // By the rules before 2 whoever could not tell recommended that.
    let abstains = |received: &&ReceivedFinding| {
        let stated = received.finding.recommendation.as_deref();
        rules >= 2 && stated.is_some_and(|stated| is_abstention(policy, stated))
    };
    let recommending: Vec<&ReceivedFinding> = sorted
        .iter()
        .copied()
        .filter(|one| !abstains(one))
        .collect();
    for kind in ConflictType::DETECTED {
        let among = match kind {
            ConflictType::RecommendationConflict => &recommending,
            _ => &sorted,
        };
        rule_of(kind).find(policy, among, &mut |found| ranking.offer(found));
    }
    let (ranked, left_out) = ranking.finish();
    let debated = debated(&ranked, limit);
    debug_assert!(
        debated.len() <= limit
            && debated.is_sorted_by(|a, b| ranking::order(a, b) != Ordering::Greater),
        "the first conflicts are debated, in ranking order"
    );
    let rest = ranked.get(debated.len()..).unwrap_or_default();
    let deferred = deferred(rest);
    let omitted = left_out.saturating_add(count(rest.len() - deferred.len()));
    let (incomparable, incomparable_omitted) = incomparable(policy, &sorted);
    Conflicts {
        debated,
        deferred,
        omitted,
        incomparable,
        incomparable_omitted,
        names: worded.matches,
        names_omitted: worded.matches_omitted,
    }
}

/// The estimates that cannot be compared, as far as there is room, and the number of the others.
fn incomparable(
    policy: &Policy,
    findings: &[&ReceivedFinding],
) -> (Vec<IncomparableEstimates>, u32) {
    let mut all = incomparable_estimates(policy, findings);
    let mut left = INCOMPARABLE_BYTES_MAX;
    let fits = |one: &&IncomparableEstimates| {
        let rest = left.checked_sub(json_bytes(one) + 1);
        rest.inspect(|rest| left = *rest).is_some()
    };
    let kept = all.iter().take_while(fits).count();
    let omitted = count(all.len() - kept);
    all.truncate(kept);
    (all, omitted)
}

/// Most deferred conflicts that are kept for another look. There is room for fewer, however small
/// they are.
const LISTED_MAX: usize = 512;

/// The conflicts to debate: all that the policy allows, with less evidence where there is little
/// room, rather than fewer with more evidence.
fn debated(ranked: &[Ranked<'_>], limit: usize) -> Vec<Conflict> {
    let limit = limit.min(ranked.len());
    let make = |place: usize, room| ranked.get(place).map(|ranked| ranked.with_room(room));
    fitting(limit, DEBATED_BYTES_MAX, make)
        .unwrap_or_else(|| without_evidence(ranked.iter(), DEBATED_BYTES_MAX))
}

/// The conflicts to defer, as far as there is room. Those about the score or the recommendation are
/// kept first.
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

/// As many conflicts as there is room for without evidence, in this order.
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
