//! What a changed decision does to the analyses: the report, and who is told.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::ImpactAssessed;
use concord_wire::payload::{ChangedAssumption, Dependency, DependencyKind, Figure, Status};
use concord_wire::{AgentId, CaseId, DebateId};

use super::{ImpactState, estimating};
use crate::rules::impact::estimate::{Standing, same};
use crate::rules::impact::graph::{Graph, Source};
use crate::rules::impact::report::{assess, report};

/// The rules by which reports are counted. To be raised when the same changes give another report.
pub(super) const RULES: u32 = 2;
/// Most people and agents who are told of a report.
pub const TOLD_MAX: usize = 64;
/// Most changes that one report is about.
const CHANGES_MAX: usize = 64;

/// What has changed in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionMoved {
    /// The case.
    pub case_id: CaseId,
    /// Who opened it, and is told.
    pub opened_by: AgentId,
    /// The debate whose outcome it is; none for the decision of the case.
    pub debate_id: Option<DebateId>,
    /// The way in which that debate ended.
    pub status: Option<Status>,
    /// The person who decided, where one did.
    pub by: Option<AgentId>,
    /// What stands now of what has changed.
    pub standings: BTreeMap<Source, Standing>,
    /// What stands of assumptions, told where it is in no report yet: a debate may end before its case knows what it is about.
    pub late: BTreeMap<Source, Standing>,
}

/// The event by which a change is assessed; none where it affects no analysis.
pub(super) fn assessed(state: &ImpactState, moved: &DecisionMoved) -> Option<ImpactAssessed> {
    let graph = &state.graph;
    let is_late = |(source, standing): &(&Source, &Standing)| {
        !is_as_used(graph, source, standing) && state.reported.get(*source) != Some(*standing)
    };
    let late = moved.late.iter().filter(is_late);
    let mut all = moved.standings.clone();
    all.extend(late.map(|(source, standing)| (source.clone(), standing.clone())));
    let mut changed = changes(graph, &all);
    changed.truncate(CHANGES_MAX);
    // As the event says it, so that whoever reads it comes to the same.
    let standings = standings(&changed);
    let impacts = assess(graph, &standings, &[]);
    if impacts.is_empty() {
        return None;
    }
    let ask = estimating::asks(state, graph, &standings, None);
    let first = changed.first()?.clone();
    let authors: BTreeSet<&AgentId> = impacts
        .iter()
        .filter_map(|one| Some(&graph.get(&one.analysis_id)?.author))
        .collect();
    let others = authors.into_iter().filter(|one| **one != moved.opened_by);
    let told = std::iter::once(&moved.opened_by).chain(others);
    Some(ImpactAssessed {
        case_id: moved.case_id.clone(),
        debate_id: moved.debate_id.clone(),
        status: moved.status,
        by: moved.by.clone(),
        told: told.take(TOLD_MAX).cloned().collect(),
        report: report(first, impacts),
        changed,
        ask,
        rules: Some(RULES),
    })
}

/// What is wrong with a report: it does not say what its changes give. One that was counted by other rules is taken as it is.
pub(super) fn recount(after: &ImpactState, assessed: &ImpactAssessed) -> Vec<String> {
    if assessed.rules != Some(RULES) {
        return Vec::new();
    }
    let impacts = assess(&after.graph, &standings(&assessed.changed), &[]);
    let again = report(assessed.report.changed_assumption.clone(), impacts);
    if again == assessed.report {
        return Vec::new();
    }
    vec![format!(
        "The report counts {} analyses, {} of them required, and its changes give {} and {}, or other estimates.",
        assessed.report.affected_count,
        assessed.report.high_impact_count,
        again.affected_count,
        again.high_impact_count
    )]
}

/// Whether everybody who uses this has used what stands of it, and was no surer of it.
fn is_as_used(graph: &Graph, source: &Source, standing: &Standing) -> bool {
    uses(graph, source).all(|used| {
        let now = standing.value(used.metric.as_deref());
        let is_same = now
            .zip(used.value.as_ref())
            .is_some_and(|(now, used)| same(now, used));
        let sure = used.confidence.zip(standing.confidence);
        is_same && sure.is_none_or(|(used, now)| now >= used)
    })
}

/// What analyses use of this source.
fn uses<'a>(graph: &'a Graph, source: &Source) -> impl Iterator<Item = &'a Dependency> {
    let all = graph.dependants(source).filter_map(|id| graph.get(id));
    let all = all.flat_map(|one| &one.published.depends_on);
    all.filter(move |used| Source::of(used).as_ref() == Some(source))
}

/// What is used of a source, part by part: of the decision of a case each metric, of anything else the one value.
fn parts<'a>(
    graph: &'a Graph,
    source: &Source,
    standing: &Standing,
) -> BTreeMap<Option<String>, Vec<&'a Figure>> {
    let is_whole = standing.values.is_empty() || standing.values.contains_key("");
    let mut parts: BTreeMap<Option<String>, Vec<&Figure>> = BTreeMap::new();
    for used in uses(graph, source) {
        let part = used.metric.clone().filter(|_| !is_whole);
        parts.entry(part).or_default().extend(&used.value);
    }
    parts
}

/// The changes, as a reader sees them: of each thing the value that most have used, and the one that stands. What nobody uses, and what is
/// as everybody has used it, is left out.
fn changes(graph: &Graph, standings: &BTreeMap<Source, Standing>) -> Vec<ChangedAssumption> {
    let mut changed = Vec::new();
    for (source, standing) in standings {
        for (metric, used) in parts(graph, source, standing) {
            let part = metric.as_deref().unwrap_or_default();
            let new_value = standing.values.get(part).cloned();
            let is_same = |one: &&Figure| new_value.as_ref().is_some_and(|new| same(new, one));
            let all_same = !used.is_empty() && used.iter().all(is_same);
            if all_same && standing.confidence.is_none() {
                continue;
            }
            let old_value = most_used(used.into_iter().filter(|one| !is_same(one)));
            changed.push(ChangedAssumption {
                kind: source.kind(),
                id: source.name().to_owned(),
                metric,
                old_value: old_value.or_else(|| new_value.clone().filter(|_| all_same)),
                new_value,
                confidence: standing.confidence,
                version: standing.version,
            });
        }
    }
    // An assumption says more than the id of the debate that decides about it.
    changed.sort_by_key(|one| match one.kind {
        DependencyKind::Assumption => 0,
        DependencyKind::Decision => 1,
        DependencyKind::Analysis => 2,
    });
    changed
}

/// The value that is there most often; of several the first.
fn most_used<'a>(used: impl Iterator<Item = &'a Figure>) -> Option<Figure> {
    let mut counted: Vec<(&Figure, usize)> = Vec::new();
    for one in used {
        match counted.iter_mut().find(|(known, _)| same(known, one)) {
            Some((_, count)) => *count += 1,
            None => counted.push((one, 1)),
        }
    }
    let most = counted.iter().map(|(_, count)| *count).max()?;
    let first = counted.iter().find(|(_, count)| *count == most)?;
    Some(first.0.clone())
}

/// What stands, as changes say it.
pub(super) fn standings(changed: &[ChangedAssumption]) -> BTreeMap<Source, Standing> {
    let mut standings: BTreeMap<Source, Standing> = BTreeMap::new();
    for one in changed {
        let used = Dependency {
            kind: one.kind,
            id: one.id.clone(),
            metric: None,
            value: None,
            confidence: None,
            version: None,
        };
        let Some(source) = Source::of(&used) else {
            continue;
        };
        let standing = standings.entry(source).or_default();
        standing.confidence = one.confidence;
        standing.version = one.version;
        if let Some(value) = &one.new_value {
            let part = one.metric.clone().unwrap_or_default();
            standing.values.insert(part, value.clone());
        }
    }
    standings
}

/// What has changed, as the report of it says.
pub fn moved(assessed: &ImpactAssessed) -> DecisionMoved {
    let opened_by = assessed.told.first().cloned();
    DecisionMoved {
        case_id: assessed.case_id.clone(),
        opened_by: opened_by.unwrap_or_else(|| AgentId::fixed("nobody")),
        debate_id: assessed.debate_id.clone(),
        status: assessed.status,
        by: assessed.by.clone(),
        standings: standings(&assessed.changed),
        late: BTreeMap::new(),
    }
}
