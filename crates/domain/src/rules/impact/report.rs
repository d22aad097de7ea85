//! How much a change does to the analyses of a case: each affected analysis once, with its largest
//! known change measured in thresholds, and the names of the figures of which nobody knows how they change.
//!
//! | figure         | how far it moves                   | doing it again is required above |
//! |----------------|------------------------------------|----------------------------------|
//! | `target_price` | as a share of the old value        | 0.10                             |
//! | `confidence`, `confidence_score` | as a difference  | 0.15                             |
//! | `risk_score`   | as a share of its scale            | 0.10                             |
//! | `rating`, any text | as any other; of a text whether it is another one | any change    |
//! | any other      | as a share of the old value        | 0.10                             |
//!
//! The names are compared as those of assumptions are. A risk score whose values are both within 0 and 1 is on the scale of 1, any other on that of 100. Where there
//! is no estimate, doing it again is required: nobody knows that it is not.

use std::collections::BTreeMap;

use concord_wire::Token;
use concord_wire::payload::{
    AnalysisImpact, ChangedAssumption, EstimateBasis, Figure, ImpactReport,
};

use super::estimate::{Estimated, Now, Standing, estimate, number, same};
use super::graph::{Analysis, Graph, Source, name_of};

/// Most analyses that a report names; the others are counted.
pub const IMPACTS_MAX: usize = 200;
/// Most figures of an analysis that are named because nobody knows how they change.
const UNKNOWN_MAX: usize = 4;
/// The name under which it is said how sure an analysis is.
pub const CONFIDENCE: &str = "confidence";
/// A sum of floating point numbers that is above a threshold by less is not above it.
const ABOVE: f64 = 1e-9;

/// What becomes of one figure.
struct Moved<'a> {
    metric: &'a str,
    old: Figure,
    new: Option<Figure>,
    delta: Option<f64>,
    magnitude: Option<f64>,
    basis: EstimateBasis,
    requires_rerun: bool,
}

/// How far a figure moves, and how far that is in its threshold.
pub fn movement(metric: &str, old: &Figure, new: &Figure) -> (f64, f64) {
    let (Some(from), Some(to)) = (number(old), number(new)) else {
        let delta = if same(old, new) { 0.0 } else { 1.0 };
        return (delta, delta);
    };
    let (delta, threshold) = match name_of(metric).as_str() {
        CONFIDENCE | "confidence score" => ((to - from).abs(), 0.15),
        "risk score" => {
            let is_share = [from, to].iter().all(|one| (0.0..=1.0).contains(one));
            let scale = if is_share { 1.0 } else { 100.0 };
            ((to - from).abs() / scale, 0.10)
        }
        _ if from == 0.0 => (if to == 0.0 { 0.0 } else { 1.0 }, 0.10),
        _ => (((to - from) / from).abs(), 0.10),
    };
    (delta, delta / threshold)
}

/// Whether a figure that moves so far has to be worked out again. Of a rating any change counts, also where it is a number.
pub fn requires_rerun(metric: &str, old: &Figure, new: &Figure, magnitude: f64) -> bool {
    let is_text = number(old).is_none() || number(new).is_none();
    let counts_any = is_text || name_of(metric) == "rating";
    magnitude > 1.0 + ABOVE || (counts_any && magnitude > ABOVE)
}

/// What becomes of each analysis that rests on something of `changed`, or on one of the analyses of `stale` in a version that does not
/// stand any more. Each once, and none before one that it uses.
pub fn assess(
    graph: &Graph,
    changed: &BTreeMap<Source, Standing>,
    stale: &[Source],
) -> Vec<AnalysisImpact> {
    let estimated = estimates(graph, changed, stale).into_iter();
    let impact = |(id, estimated): (Token, Estimated)| {
        let analysis = graph.get(&id)?;
        Some(impact(&id, analysis, &estimated))
    };
    estimated.filter_map(impact).collect()
}

/// The same, with the estimates of all figures.
pub fn estimates(
    graph: &Graph,
    changed: &BTreeMap<Source, Standing>,
    stale: &[Source],
) -> Vec<(Token, Estimated)> {
    let roots: Vec<Source> = changed.keys().chain(stale).cloned().collect();
    let mut before: BTreeMap<Token, Estimated> = BTreeMap::new();
    let affected = graph.affected(&roots);
    for id in &affected {
        let Some(analysis) = graph.get(id) else {
            continue;
        };
        if let Some(estimated) = estimate(graph, analysis, changed, &before) {
            before.insert(id.clone(), estimated);
        }
    }
    affected
        .into_iter()
        .filter_map(|id| before.remove_entry(&id))
        .collect()
}

fn impact(id: &Token, analysis: &Analysis, estimated: &Estimated) -> AnalysisImpact {
    let published = &analysis.published;
    let figures = estimated.figures.iter();
    let figures: Vec<Moved<'_>> = figures
        .filter_map(|(metric, (now, basis))| {
            let old = published.figures.get(metric)?.clone();
            Some(moved(metric, old, now, *basis))
        })
        .collect();
    let confidence = published.confidence.zip(estimated.confidence_after);
    let confidence = confidence.map(|(old, new)| {
        let now = Now::Known(Figure::Number(new));
        moved(
            CONFIDENCE,
            Figure::Number(old),
            &now,
            EstimateBasis::Cascade,
        )
    });
    let mut all = figures.iter().chain(&confidence);
    let requires_rerun = estimated.without_figures || all.any(|one| one.requires_rerun);
    let (shown, unknown) = shown(figures, confidence);
    let shown = shown.filter(|_| !estimated.without_figures);
    let first = shown.as_ref().map(|one| one.metric);
    let mut named = first.into_iter().chain(unknown.iter().map(String::as_str));
    let reason = named.find_map(|metric| estimated.asked.get(metric)?.reason());
    let is_estimated = shown.as_ref().is_some_and(|one| one.new.is_some());
    AnalysisImpact {
        analysis_id: id.clone(),
        kind: published.kind.clone(),
        metric: shown.as_ref().map(|one| one.metric.to_owned()),
        old_value: shown.as_ref().map(|one| one.old.clone()),
        estimated_new_value: shown.as_ref().and_then(|one| one.new.clone()),
        delta: shown.as_ref().and_then(|one| one.delta),
        magnitude: shown.as_ref().and_then(|one| one.magnitude),
        basis: shown.map_or(EstimateBasis::None, |one| one.basis),
        reason,
        unknown,
        confidence: if is_estimated {
            estimated.confidence
        } else {
            0.0
        },
        confidence_after: estimated.confidence_after,
        requires_rerun,
        rerun_minutes: published.rerun_minutes,
    }
}

/// The change of an analysis that a report shows: the largest that is known, for it says more than that another figure is unknown. With it
/// the names of other figures that are.
fn shown<'a>(
    figures: Vec<Moved<'a>>,
    confidence: Option<Moved<'a>>,
) -> (Option<Moved<'a>>, Vec<String>) {
    let (known, unknown): (Vec<_>, Vec<_>) = figures.into_iter().partition(|one| one.new.is_some());
    let mut unknown = unknown.into_iter();
    let instead = known.is_empty().then(|| unknown.next()).flatten();
    let shown = instead.or_else(|| {
        let known = known.into_iter().chain(confidence);
        known.max_by(|a, b| size(a.magnitude).total_cmp(&size(b.magnitude)))
    });
    let unknown = unknown.take(UNKNOWN_MAX);
    (shown, unknown.map(|one| one.metric.to_owned()).collect())
}

/// A magnitude for comparison: what nobody knows may be anything.
pub(super) fn size(magnitude: Option<f64>) -> f64 {
    magnitude.unwrap_or(f64::INFINITY)
}

fn moved<'a>(metric: &'a str, old: Figure, now: &Now, basis: EstimateBasis) -> Moved<'a> {
    let Now::Known(new) = now else {
        return Moved {
            metric,
            old,
            new: None,
            delta: None,
            magnitude: None,
            basis,
            requires_rerun: true,
        };
    };
    let (delta, magnitude) = movement(metric, &old, new);
    Moved {
        metric,
        requires_rerun: requires_rerun(metric, &old, new, magnitude),
        old,
        new: Some(new.clone()),
        delta: Some(delta),
        magnitude: Some(magnitude),
        basis,
    }
}

/// The analyses in the order of a report: those that must be done again first, of these the largest change first, then by id.
pub fn by_magnitude(mut impacts: Vec<AnalysisImpact>) -> Vec<AnalysisImpact> {
    impacts.sort_by(|a, b| {
        let required = b.requires_rerun.cmp(&a.requires_rerun);
        required
            .then_with(|| size(b.magnitude).total_cmp(&size(a.magnitude)))
            .then_with(|| a.analysis_id.cmp(&b.analysis_id))
    });
    impacts
}

/// The report of a change.
pub fn report(changed_assumption: ChangedAssumption, impacts: Vec<AnalysisImpact>) -> ImpactReport {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let required = || impacts.iter().filter(|one| one.requires_rerun);
    let (affected, high) = (impacts.len(), required().count());
    let total_rerun_time = required().map(|one| u64::from(one.rerun_minutes)).sum();
    let mut impacts = by_magnitude(impacts);
    impacts.truncate(IMPACTS_MAX);
    ImpactReport {
        changed_assumption,
        affected_count: count(affected),
        impacts_omitted: count(affected.saturating_sub(impacts.len())),
        impacts,
        total_rerun_time,
        high_impact_count: count(high),
    }
}

#[cfg(test)]
mod tests;
