//! The plan of doing analyses again: which must be, in which order, how long it takes.
//!
//! *Required* is what the report says, and each affected analysis that a required one uses: without
//! its new figures the required one cannot be done again. Everything else that is affected is
//! optional.
//!
//! *The order*: nothing before what it uses; among those that could be next the largest change in
//! its thresholds, then the first by id. *The strategy*: serial up to two; parallel where two of
//! them do not wait for each other; else serial. *The time*: the sum where serial, the longest way
//! through what waits for each other where parallel; so it does not count that an agent may have to do
//! one after the other.

use std::collections::{BTreeMap, BTreeSet};

use concord_wire::Token;
use concord_wire::payload::{AnalysisImpact, RerunPlan, RerunStep, RerunStrategy};

use super::graph::{Graph, Source};
use super::report::{by_magnitude, size};

/// Most analyses that one run does again. The others need another run.
pub const RERUNS_MAX: usize = 500;
/// Up to so many are done one after the other.
const SERIAL_MAX: usize = 2;

/// The plan for these impacts, which stand in the order of [`assess`](super::report::assess).
pub fn plan(graph: &Graph, impacts: &[AnalysisImpact]) -> RerunPlan {
    let required = required(graph, impacts);
    let ordered = in_order(graph, impacts, &required);
    let left_over = ordered.len().saturating_sub(RERUNS_MAX);
    let steps = steps(graph, ordered.get(..RERUNS_MAX).unwrap_or(&ordered));
    let (depth, critical) = longest(&steps);
    let strategy = if steps.len() <= SERIAL_MAX || depth == steps.len() {
        RerunStrategy::Serial
    } else {
        RerunStrategy::Parallel
    };
    let estimated_minutes = match strategy {
        RerunStrategy::Serial => steps.iter().map(|one| u64::from(one.rerun_minutes)).sum(),
        RerunStrategy::Parallel => critical,
    };
    let optional: Vec<AnalysisImpact> = impacts
        .iter()
        .filter(|one| !required.contains(&one.analysis_id))
        .cloned()
        .collect();
    let names = by_magnitude(optional)
        .into_iter()
        .map(|one| one.analysis_id);
    let (names, all): (Vec<Token>, _) = (names.clone().take(RERUNS_MAX).collect(), names.count());
    RerunPlan {
        strategy,
        estimated_minutes,
        blocking: !steps.is_empty(),
        required: steps,
        required_omitted: u32::try_from(left_over).unwrap_or(u32::MAX),
        optional_omitted: u32::try_from(all - names.len()).unwrap_or(u32::MAX),
        optional: names,
    }
}

/// What must be done again, and what that uses.
fn required<'a>(graph: &Graph, impacts: &'a [AnalysisImpact]) -> BTreeSet<&'a Token> {
    let affected: BTreeMap<&Token, &Token> = impacts
        .iter()
        .map(|one| (&one.analysis_id, &one.analysis_id))
        .collect();
    let mut required: BTreeSet<&Token> = BTreeSet::new();
    // Backwards, so that whatever an analysis is needed for comes before it.
    for one in impacts.iter().rev() {
        if !one.requires_rerun && !required.contains(&one.analysis_id) {
            continue;
        }
        required.insert(&one.analysis_id);
        let uses = graph.get(&one.analysis_id).into_iter();
        for source in uses.flat_map(|analysis| analysis.sources()) {
            if let Source::Analysis(used) = source
                && let Some(used) = affected.get(&used)
            {
                required.insert(used);
            }
        }
    }
    required
}

/// The analyses that each of these uses among them.
fn within<'a>(graph: &Graph, id: &Token, inside: &BTreeSet<&'a Token>) -> BTreeSet<&'a Token> {
    let analysis = graph.get(id).into_iter();
    let sources = analysis.flat_map(|analysis| analysis.sources());
    let used = sources.filter_map(|source| match source {
        Source::Analysis(used) => inside.get(&used).copied(),
        _ => None,
    });
    used.collect()
}

fn in_order<'a>(
    graph: &Graph,
    impacts: &'a [AnalysisImpact],
    required: &BTreeSet<&'a Token>,
) -> Vec<&'a AnalysisImpact> {
    let by_id: BTreeMap<&Token, &AnalysisImpact> = impacts
        .iter()
        .filter(|one| required.contains(&one.analysis_id))
        .map(|one| (&one.analysis_id, one))
        .collect();
    let mut missing: BTreeMap<&Token, usize> = BTreeMap::new();
    let mut users: BTreeMap<&Token, Vec<&Token>> = BTreeMap::new();
    for id in by_id.keys() {
        let uses = within(graph, id, required);
        missing.insert(*id, uses.len());
        for used in uses {
            users.entry(used).or_default().push(*id);
        }
    }
    // The largest is the last of the set.
    let rank = |one: &'a AnalysisImpact| {
        (
            Rank(size(one.magnitude)),
            std::cmp::Reverse(&one.analysis_id),
        )
    };
    let free = missing.iter().filter(|(_, count)| **count == 0);
    let mut ready: BTreeSet<_> = free
        .filter_map(|(id, _)| by_id.get(*id).copied().map(rank))
        .collect();
    let mut ordered = Vec::with_capacity(by_id.len());
    while let Some((_, std::cmp::Reverse(id))) = ready.pop_last() {
        ordered.extend(by_id.get(id).copied());
        for user in users.get(id).into_iter().flatten() {
            let Some(count) = missing.get_mut(user) else {
                continue;
            };
            *count = count.saturating_sub(1);
            if *count == 0 {
                ready.extend(by_id.get(user).copied().map(rank));
            }
        }
    }
    debug_assert_eq!(ordered.len(), by_id.len(), "the graph has no cycle");
    ordered
}

/// A magnitude that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rank(f64);

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn steps(graph: &Graph, ordered: &[&AnalysisImpact]) -> Vec<RerunStep> {
    let places: BTreeMap<&Token, u32> = ordered
        .iter()
        .zip(0..)
        .map(|(one, place)| (&one.analysis_id, place))
        .collect();
    let inside: BTreeSet<&Token> = places.keys().copied().collect();
    let step = |one: &&AnalysisImpact| {
        let analysis = graph.get(&one.analysis_id)?;
        let uses = within(graph, &one.analysis_id, &inside);
        Some(RerunStep {
            analysis_id: one.analysis_id.clone(),
            agent_id: analysis.author.clone(),
            after: uses
                .iter()
                .filter_map(|used| places.get(*used).copied())
                .collect(),
            magnitude: one.magnitude,
            rerun_minutes: one.rerun_minutes,
        })
    };
    ordered.iter().filter_map(step).collect()
}

/// The longest way through steps that wait for each other: in steps, and in minutes.
fn longest(steps: &[RerunStep]) -> (usize, u64) {
    let mut until: Vec<(usize, u64)> = Vec::with_capacity(steps.len());
    for step in steps {
        let before = step.after.iter().filter_map(|place| {
            let place = usize::try_from(*place).ok()?;
            until.get(place).copied()
        });
        let (count, minutes) = before.fold((0, 0), |(count, minutes), (a, b)| {
            (a.max(count), b.max(minutes))
        });
        until.push((count + 1, minutes + u64::from(step.rerun_minutes)));
    }
    let ends = until.into_iter();
    ends.fold((0, 0), |(count, minutes), (a, b)| {
        (a.max(count), b.max(minutes))
    })
}

#[cfg(test)]
mod tests;
