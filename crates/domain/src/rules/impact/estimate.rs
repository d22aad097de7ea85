//! What becomes of an analysis when something that it uses changes: each figure by its models, and
//! how sure the analysis still is.
//!
//! | model         | the new figure                                                                     |
//! |---------------|------------------------------------------------------------------------------------|
//! | `sensitivity` | `old * (1 + sum(percent * (now - used)) / 100)`: specification 3's linear approximation |
//! | `elasticity`  | `old * (1 + sum(percent * (now - used) / used))`, in the same sum                  |
//! | `formula`     | the formula of what is used now                                                    |
//! | `agent`       | what the agent says that is asked with the values that stand now                    |
//! | none          | none: nobody knows                                                                 |
//!
//! A figure without models of its own takes those that are [`BUILT_IN`]. What is used and not
//! named by any model of the figure makes its estimate unknown, if it has changed: a model that says 0 says that
//! the figure does not depend on it.
//!
//! *How sure an estimate is* is 0.70 where a sensitivity or an elasticity makes it (specification 3)
//! and 1 where a formula does, as sure as the agent says where it was asked, times how sure the estimates are that it uses: two approximations one after the
//! other are 0.49.
//!
//! What was used and what stands now are numbers of one scale: where their units cannot be converted, nobody knows.
//!
//! *How sure an analysis is* falls with what it uses: it keeps the smallest share of its confidence
//! that any of its inputs has kept of its own, `stated * min(now / used)`. Nothing becomes surer by
//! resting on something surer; only whoever does it again can say so.

use std::collections::BTreeMap;

use concord_wire::Token;
use concord_wire::payload::{Dependency, EstimateBasis, EstimateModel, Figure};

mod asking;
mod scale;

pub use asking::{Asked, WITHIN_MS};
use scale::{Both, as_used, both};

use super::formula::Formula;
use super::graph::{Analysis, Graph, Source, name_of};
use crate::rules::canonical::{digits, normalise, rounded};

/// How sure an estimate is that a sensitivity or an elasticity makes.
pub const LINEAR_CONFIDENCE: f64 = 0.70;
/// The sensitivities that hold where an analysis states no model for a figure: what is used, the figure, and by how many percent it
/// changes for one point, which is 0.01 where both values are within -1 and 1. Specification 3: 1 % margin makes 8 to 12 % of the price, calculated as 10.
pub const BUILT_IN: [(&str, &str, f64); 1] = [("operating_margin", "target_price", 10.0)];
/// Numbers that differ by less, as a share of the larger one, are the same.
const SAME: f64 = 1e-9;

/// What stands of a source.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// Its values: by part for the decision of a case, under the empty name for anything else.
    pub values: BTreeMap<String, Figure>,
    /// How sure they are, 0 to 1, where that is known.
    pub confidence: Option<f64>,
    /// The version of the decision, for the decision of a case.
    pub version: Option<u32>,
}

impl Standing {
    /// Of something that has one value, or none.
    pub fn of(value: Option<Figure>, confidence: Option<f64>) -> Self {
        let values = value.map(|value| (String::new(), value));
        Self {
            values: values.into_iter().collect(),
            confidence,
            version: None,
        }
    }

    /// Its value, or that of this part.
    pub(crate) fn value(&self, metric: Option<&str>) -> Option<&Figure> {
        let whole = self.values.get("");
        whole.or_else(|| self.values.get(metric.unwrap_or_default()))
    }
}

/// A value that something has now.
#[derive(Debug, Clone, PartialEq)]
pub enum Now {
    /// This.
    Known(Figure),
    /// It has changed, and nobody knows to what.
    Unknown,
}

/// What becomes of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimated {
    /// Its figures that change, or of which nobody knows whether they do.
    pub figures: BTreeMap<String, (Now, EstimateBasis)>,
    /// Whether something is used that has changed, and the analysis has no figure.
    pub without_figures: bool,
    /// How sure the estimates are.
    pub confidence: f64,
    /// How sure the analysis still is, where that has fallen.
    pub confidence_after: Option<f64>,
    /// How it stands with the figures of which an agent is asked.
    pub asked: BTreeMap<String, Asked>,
}

/// One thing that an analysis uses, as it is now.
struct Input<'a> {
    used: &'a Dependency,
    now: Option<Now>,
    /// How sure the estimate of it is; 1 for what is decided.
    sure: f64,
    /// Which share of its confidence it has kept.
    kept: f64,
}

impl Input<'_> {
    /// The value before and now, where both are numbers of one scale.
    fn numbers(&self) -> Option<Both> {
        let used = self.used.value.as_ref()?;
        match &self.now {
            None => both(used, used),
            Some(Now::Known(now)) => both(used, now),
            Some(Now::Unknown) => None,
        }
    }
}

/// The name under which a model knows what an analysis uses: the metric, or else the id.
pub fn input_name(used: &Dependency) -> &str {
    used.metric.as_deref().unwrap_or(&used.id)
}

/// Whether a model that says `name` means this; a name with its id before it (`dcf.target_price`) means one of several.
pub(super) fn is_named(used: &Dependency, name: &str) -> bool {
    let matches = |one: &str| name_of(one) == name_of(name);
    let full = used.metric.as_ref();
    matches(input_name(used))
        || full.is_some_and(|metric| matches(&format!("{}.{metric}", used.id)))
}

/// A figure as a number; a text that is one, with a currency sign before it or a percent sign after it, counts.
pub fn number(figure: &Figure) -> Option<f64> {
    match figure {
        Figure::Number(number) => Some(*number),
        Figure::Text(text) => {
            let bare = text.trim().trim_start_matches(['$', '€', '£']);
            let bare = bare.trim_end_matches('%').trim();
            let number = digits::number(bare)?;
            number.is_finite().then_some(number)
        }
    }
}

/// Whether two figures are the same, in whatever units they are written.
pub fn same(one: &Figure, other: &Figure) -> bool {
    match both(one, other) {
        Some(Both { used, now, .. }) => (used - now).abs() <= SAME * used.abs().max(now.abs()),
        None => normalise(&one.to_string()) == normalise(&other.to_string()),
    }
}

/// What becomes of an analysis, when `changed` has changed and `before` has become of those analyses that it uses; none where nothing that it
/// uses is different.
pub fn estimate(
    graph: &Graph,
    analysis: &Analysis,
    changed: &BTreeMap<Source, Standing>,
    before: &BTreeMap<Token, Estimated>,
) -> Option<Estimated> {
    let uses = analysis.published.depends_on.iter();
    let inputs: Vec<Input<'_>> = uses
        .map(|used| input(graph, used, changed, before))
        .collect();
    let kept = inputs.iter().map(|one| one.kept).fold(1.0, f64::min);
    let stated = analysis.published.confidence;
    let confidence_after = stated.filter(|_| kept < 1.0).map(|stated| stated * kept);
    let moved: Vec<&Input<'_>> = inputs.iter().filter(|one| one.now.is_some()).collect();
    if moved.is_empty() && confidence_after.is_none() {
        return None;
    }
    let sure: f64 = moved.iter().map(|one| one.sure).product();
    let mut estimated = Estimated {
        figures: BTreeMap::new(),
        without_figures: analysis.published.figures.is_empty() && !moved.is_empty(),
        confidence: sure,
        confidence_after,
        asked: BTreeMap::new(),
    };
    let mut linear = false;
    let mut said: f64 = 1.0;
    for (metric, old) in &analysis.published.figures {
        if moved.is_empty() {
            break;
        }
        let (now, basis) = match asking::asked(graph, analysis, metric, &inputs) {
            Some((now, state)) => {
                if let Asked::Given(sure) = state {
                    said = said.min(sure);
                }
                estimated.asked.insert(metric.clone(), state);
                (now, EstimateBasis::Agent)
            }
            None => figure(analysis, metric, old, &inputs),
        };
        if let Now::Known(new) = &now
            && same(old, new)
        {
            continue;
        }
        linear |= matches!(
            basis,
            EstimateBasis::Sensitivity | EstimateBasis::Elasticity
        );
        estimated.figures.insert(metric.clone(), (now, basis));
    }
    if linear {
        estimated.confidence *= LINEAR_CONFIDENCE;
    }
    estimated.confidence *= said;
    let is_same = estimated.figures.is_empty() && !estimated.without_figures;
    (!is_same || estimated.confidence_after.is_some()).then_some(estimated)
}

fn input<'a>(
    graph: &Graph,
    used: &'a Dependency,
    changed: &BTreeMap<Source, Standing>,
    before: &BTreeMap<Token, Estimated>,
) -> Input<'a> {
    let mut input = Input {
        used,
        now: None,
        sure: 1.0,
        kept: 1.0,
    };
    let Some(source) = Source::of(used) else {
        return input;
    };
    let kept = |now: Option<f64>| match (now, used.confidence) {
        (Some(now), Some(used)) if now < used => now / used,
        _ => 1.0,
    };
    if let Some(standing) = changed.get(&source) {
        input.kept = kept(standing.confidence);
        if used.metric.is_none()
            && let Some(version) = standing.version
        {
            // The whole of a decision was used.
            let is_older = used.version.is_some_and(|used| used < version);
            input.now = is_older.then_some(Now::Unknown);
            return input;
        }
        let now = standing.value(used.metric.as_deref());
        input.now = match (now, &used.value) {
            (Some(now), Some(value)) if same(now, value) => None,
            (Some(now), value) => Some(Now::Known(as_used(value.as_ref(), now))),
            // A part of a decision that has no value is one that did not change.
            (None, _) if standing.version.is_some() => None,
            (None, _) => Some(Now::Unknown),
        };
        return input;
    }
    let Source::Analysis(id) = &source else {
        return input;
    };
    let Some(known) = graph.get(id) else {
        return input;
    };
    let estimated = before.get(id);
    let certain = estimated.and_then(|one| one.confidence_after);
    input.kept = kept(certain.or(known.published.confidence));
    input.sure = estimated.map_or(1.0, |one| one.confidence);
    input.now = match &used.metric {
        Some(metric) => figure_now(known, metric, estimated, used.value.as_ref()),
        None => {
            let moves = estimated.is_some_and(|one| !one.figures.is_empty() || one.without_figures);
            let is_older = used.version.is_some_and(|used| used < known.changed_in);
            (moves || is_older).then_some(Now::Unknown)
        }
    };
    input
}

/// A dependency as somebody would state it who uses what stands now.
pub fn refreshed(
    graph: &Graph,
    used: &Dependency,
    standings: &BTreeMap<Source, Standing>,
) -> Dependency {
    let mut now = used.clone();
    let Some(source) = Source::of(used) else {
        return now;
    };
    if let Some(standing) = standings.get(&source) {
        let value = standing.value(used.metric.as_deref());
        let value = value.map(|value| as_used(used.value.as_ref(), value));
        now.value = value.or(now.value);
        now.confidence = standing.confidence.or(now.confidence);
        now.version = standing.version.or(now.version);
    }
    if let Source::Analysis(id) = &source
        && let Some(known) = graph.get(id)
    {
        let published = &known.published;
        let metric = used.metric.as_ref();
        let figure = metric.and_then(|metric| published.figures.get(metric));
        now.value = figure.cloned().or(now.value);
        now.confidence = published.confidence.or(now.confidence);
        now.version = Some(known.version);
    }
    now
}

/// What a figure of another analysis is now; none where it is what was used.
fn figure_now(
    known: &Analysis,
    metric: &str,
    estimated: Option<&Estimated>,
    used: Option<&Figure>,
) -> Option<Now> {
    let moved = estimated.and_then(|one| one.figures.get(metric));
    if let Some((now, _)) = moved {
        return match (now, used) {
            (Now::Known(now), Some(used)) if same(now, used) => None,
            (now, _) => Some(now.clone()),
        };
    }
    // The analysis stands in a newer version than the one that was used.
    match (known.published.figures.get(metric), used) {
        (Some(now), Some(used)) if same(now, used) => None,
        (Some(now), Some(_)) => Some(Now::Known(now.clone())),
        (Some(_), None) => None,
        (None, _) => Some(Now::Unknown),
    }
}

/// The estimate of one figure.
fn figure(
    analysis: &Analysis,
    metric: &str,
    old: &Figure,
    inputs: &[Input<'_>],
) -> (Now, EstimateBasis) {
    let unknown = (Now::Unknown, EstimateBasis::None);
    let models = analysis.published.models.iter();
    let own: Vec<&EstimateModel> = models.filter(|one| one.metric() == metric).collect();
    if let Some(EstimateModel::Formula { formula, .. }) = own
        .iter()
        .find(|one| matches!(one, EstimateModel::Formula { .. }))
    {
        let of = |name: &str| {
            let input = inputs.iter().find(|one| is_named(one.used, name))?;
            input.numbers().map(|both| both.now)
        };
        let value = Formula::parse(formula)
            .ok()
            .and_then(|read| read.value(&of));
        return match value {
            Some(value) => (Now::Known(Figure::Number(value)), EstimateBasis::Formula),
            None => unknown,
        };
    }
    let mut share = 0.0;
    let mut basis = EstimateBasis::None;
    for input in inputs.iter().filter(|one| one.now.is_some()) {
        let Some((moves_by, rests_on)) = moves(&own, metric, input) else {
            return unknown;
        };
        share += moves_by;
        basis = basis.max(rests_on);
    }
    match number(old) {
        // What does not depend on what has changed stays as it is, a text as it is written.
        _ if share == 0.0 => (Now::Known(old.clone()), basis),
        Some(number) => (Now::Known(as_written(old, number * (1.0 + share))), basis),
        // Where words would move, nobody knows.
        None => unknown,
    }
}

/// A new number in the place of this figure. One that is written as percent stays so: without its unit 0.55 is a share.
fn as_written(old: &Figure, number: f64) -> Figure {
    match old {
        Figure::Text(text) if text.trim().ends_with('%') => {
            Figure::Text(format!("{} %", rounded(number)))
        }
        _ => Figure::Number(number),
    }
}

/// By which share of itself a figure moves because of one input; none where no model says so.
fn moves(own: &[&EstimateModel], metric: &str, input: &Input<'_>) -> Option<(f64, EstimateBasis)> {
    let name = |one: &str| is_named(input.used, one);
    let stated = own.iter().find_map(|model| match model {
        EstimateModel::Sensitivity { input, percent, .. } if name(input) => {
            Some((*percent, EstimateBasis::Sensitivity))
        }
        EstimateModel::Elasticity { input, percent, .. } if name(input) => {
            Some((*percent, EstimateBasis::Elasticity))
        }
        _ => None,
    });
    let built_in = || {
        let mut all = BUILT_IN.iter();
        let found = all.find(|(used, of, _)| name_of(of) == name_of(metric) && name(used));
        found.map(|(_, _, percent)| (*percent, EstimateBasis::Sensitivity))
    };
    let (percent, basis) = stated.or_else(|| own.is_empty().then(built_in).flatten())?;
    if percent == 0.0 {
        return Some((0.0, basis));
    }
    let Both { used, now, points } = input.numbers()?;
    let share = match basis {
        EstimateBasis::Elasticity => percent * (now - used) / used,
        // What an analysis states is for the unit in which it states what it uses; the built-in one is for points.
        _ if stated.is_none() => percent * points / 100.0,
        _ => percent * (now - used) / 100.0,
    };
    share.is_finite().then_some((share, basis))
}

#[cfg(test)]
pub(super) mod tests;
