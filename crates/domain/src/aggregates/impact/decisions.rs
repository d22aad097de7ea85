//! What analyses use of the decisions of their case.

use std::collections::BTreeMap;

use concord_events::CaseEvent;
use concord_wire::payload::{
    ConflictOutcome, Dependency, DependencyKind, EstimateModel, Figure, Outcome, PublishAnalysis,
};
use concord_wire::{AgentId, DebateId, Fault};
use serde_json::Value;

use super::publish::{PARAMETERS, some_of};
use crate::aggregates::case::{CaseState, confidence_of, everyone_in};
use crate::rules::conflict_type::meant;
use crate::rules::impact::estimate::Standing;
use crate::rules::impact::graph::{Graph, Source};
use crate::rules::impact::resting::PARTS;
use crate::rules::size_budget::truncate;

/// The analysis with the values that stand in the case, where it does not say which it used. Refused where the case has no such debate,
/// and its decision no such part.
pub fn with_decisions(
    case: &CaseState,
    mut analysis: PublishAnalysis,
) -> Result<PublishAnalysis, Fault> {
    check_asked(case, &analysis)?;
    let assumptions = assumption_standings(case, None);
    for (place, used) in analysis.depends_on.iter_mut().enumerate() {
        match used.kind {
            DependencyKind::Decision => {
                let pointer = format!("{PARAMETERS}/depends_on/{place}");
                fill_in(case, used, &pointer)?;
            }
            DependencyKind::Assumption => {
                // It may be about what no debate has decided; then nothing stands.
                let standing = assumptions.get(&Source::assumption(&used.id));
                fill_in_standing(used, standing);
            }
            DependencyKind::Analysis => {}
        }
    }
    Ok(analysis)
}

fn fill_in_standing(used: &mut Dependency, standing: Option<&Standing>) {
    let Some(standing) = standing else {
        return;
    };
    if used.value.is_none() {
        used.value = standing.values.get("").cloned();
    }
    used.confidence = used.confidence.or(standing.confidence);
}

/// Whoever is asked for estimates is in the case: nobody gives work to strangers.
fn check_asked(case: &CaseState, analysis: &PublishAnalysis) -> Result<(), Fault> {
    let inside = case.opened.as_deref().map(everyone_in).unwrap_or_default();
    for (place, model) in analysis.models.iter().enumerate() {
        if let EstimateModel::Agent { agent, .. } = model
            && !inside.contains(agent)
        {
            return Err(Fault::invalid(
                format!("{PARAMETERS}/models/{place}/agent"),
                format!("{agent} is not in this case."),
                format!(
                    "Name one of {}.",
                    some_of(inside.iter().map(AgentId::as_str))
                ),
            ));
        }
    }
    Ok(())
}

fn fill_in(case: &CaseState, used: &mut Dependency, pointer: &str) -> Result<(), Fault> {
    if case
        .case_id
        .as_ref()
        .is_some_and(|id| id.as_str() == used.id)
    {
        return fill_in_part(case, used, pointer);
    }
    let debates = case.debated.iter().map(|conflict| &conflict.conflict_id);
    let mut debates = debates.chain(case.outcomes.keys());
    if !debates.any(|id| id.as_str() == used.id) {
        let known = case.debated.iter().map(|one| one.conflict_id.as_str());
        return Err(Fault::invalid(
            format!("{pointer}/id"),
            format!("The case has no debate {:?}.", used.id),
            format!(
                "Give the id of the case for its decision, or of one of its debates: {}.",
                some_of(known)
            ),
        ));
    }
    if let Ok(debate) = DebateId::new(used.id.as_str()) {
        let standings = debate_standings(case, &debate);
        fill_in_standing(used, standings.get(&Source::Decision(debate.token())));
    }
    Ok(())
}

fn fill_in_part(case: &CaseState, used: &mut Dependency, pointer: &str) -> Result<(), Fault> {
    let version = case.decision.as_ref().map_or(0, |one| one.version);
    used.version.get_or_insert(version);
    let Some(part) = &used.metric else {
        return Ok(());
    };
    let [risk_score, recommendation, clauses] = PARTS;
    let is_clause = part
        .strip_prefix(clauses)
        .is_some_and(|kind| !kind.is_empty());
    if part != risk_score && part != recommendation && !is_clause {
        return Err(Fault::invalid(
            format!("{pointer}/metric"),
            format!("A decision has no part {part:?}."),
            format!("Use {risk_score}, {recommendation}, or {clauses} and a clause type."),
        ));
    }
    let decision = case.decision.as_ref();
    if used.value.is_none() {
        used.value = decision.and_then(|decision| part_of(&decision.outcome, part));
    }
    Ok(())
}

/// A part of a decision's result as a figure; none where it has none.
fn part_of(outcome: &Outcome, part: &str) -> Option<Figure> {
    let [risk_score, recommendation, clauses] = PARTS;
    if part == risk_score {
        return outcome.risk_score.map(Figure::Number);
    }
    if part == recommendation {
        return outcome.recommendation.as_deref().map(text);
    }
    let clause = outcome.clauses.get(part.strip_prefix(clauses)?)?;
    Some(Figure::Text(clause.present.to_string()))
}

/// The resolution of a debate as a figure: its value where it has one, else its words. A number without a unit is in that of what was held, at
/// first or in the end.
fn value_of(case: &CaseState, outcome: &ConflictOutcome) -> Option<Figure> {
    let resolution = outcome.resolution.as_ref()?;
    let conflict = case.debated.iter();
    let conflict = conflict.filter(|one| one.conflict_id == outcome.conflict_id);
    let held = conflict.flat_map(|one| &one.positions);
    let held = held.chain(&outcome.positions);
    Some(match &resolution.value {
        Some(value) => figure(&meant(value, held)),
        None => text(&resolution.position),
    })
}

/// Any value as a figure. A number with its unit is a text, `28 %`.
fn figure(value: &Value) -> Figure {
    match value {
        Value::Number(number) => Figure::Number(number.as_f64().unwrap_or_default()),
        Value::String(words) => text(words),
        Value::Object(fields) => {
            let unit = fields.get("unit").and_then(Value::as_str);
            let unit = unit.map(str::trim).filter(|unit| !unit.is_empty());
            match (fields.get("value"), unit) {
                (Some(Value::Number(number)), unit) => {
                    let number = Figure::Number(number.as_f64().unwrap_or_default());
                    unit.map_or_else(|| number.clone(), |unit| text(&format!("{number} {unit}")))
                }
                (Some(Value::String(words)), Some(unit))
                    if words.ends_with(|end: char| end.is_ascii_digit()) =>
                {
                    text(&format!("{words} {unit}"))
                }
                (Some(Value::String(words)), _) => text(words),
                _ => text(&value.to_string()),
            }
        }
        other => text(&other.to_string()),
    }
}

/// What others wrote, with room for it in an event.
fn text(words: &str) -> Figure {
    Figure::Text(truncate::words(words))
}

/// The result that stands of what a debate was about. One that ended without a result leaves standing what was before it.
fn standing<'a>(case: &'a CaseState, debate: &DebateId) -> Option<&'a ConflictOutcome> {
    let mut outcomes = case.outcomes_of_same(debate);
    let found = outcomes.find(|outcome| outcome.resolution.is_some());
    found.or_else(|| case.outcomes.get(debate))
}

/// The debates that have ended, in the order in which they say what stands: the one with the latest result comes last, however its id sorts.
fn ended(case: &CaseState) -> Vec<&DebateId> {
    let mut ended: Vec<&DebateId> = case.outcomes.keys().collect();
    ended.sort_by_cached_key(|debate| {
        let outcome = standing(case, debate);
        outcome.map(|outcome| (outcome.resolution.is_some(), outcome.resolved_at))
    });
    ended
}

/// What stands because a debate has ended: of the debate itself and of those about the same, and of the assumptions that it decides about,
/// which may be what another debate has decided.
pub fn debate_standings(case: &CaseState, debate: &DebateId) -> BTreeMap<Source, Standing> {
    let latest = assumption_standings(case, None);
    let mut standings = own_standings(case, debate);
    for (source, standing) in &mut standings {
        if let Some(latest) = latest.get(source) {
            standing.clone_from(latest);
        }
    }
    standings
}

/// The same, as far as this debate and those about the same say it.
fn own_standings(case: &CaseState, debate: &DebateId) -> BTreeMap<Source, Standing> {
    let Some(outcome) = standing(case, debate) else {
        return BTreeMap::new();
    };
    let standing = Standing::of(value_of(case, outcome), confidence_of(outcome));
    let conflict = case.debated.iter().find(|one| one.conflict_id == *debate);
    let about = conflict
        .filter(|_| !case.yields(outcome))
        .map(|one| Source::decided(one, &case.debated));
    // Analyses may have used the debate that this one takes up again.
    let same = case.outcomes_of_same(debate);
    same.map(|one| Source::Decision(one.conflict_id.token()))
        .chain(about.into_iter().flatten())
        .map(|source| (source, standing.clone()))
        .collect()
}

/// What an event of a case may change for its analyses.
#[derive(Debug, Clone, Copy)]
pub struct MovedBy<'e> {
    /// Whether the result of the decision is another.
    result: bool,
    /// The debate that changed it, which is told of when its end is heard of, by name of whoever ruled.
    told_apart: Option<&'e DebateId>,
}

/// What this event may change: a version of the decision. The conflicts of a case may change something as well, see
/// [`assumption_standings`].
pub fn moved_by(event: &CaseEvent) -> Option<MovedBy<'_>> {
    let (result, told_apart) = match event {
        CaseEvent::Decided(_) => (true, None),
        CaseEvent::DecisionChanged(changed) => (
            !changed.change.changed.is_empty(),
            Some(&changed.outcome.conflict_id),
        ),
        _ => return None,
    };
    Some(MovedBy { result, told_apart })
}

impl MovedBy<'_> {
    /// What stands of the result, and what stands of assumptions.
    pub fn standings(
        &self,
        case: &CaseState,
    ) -> (BTreeMap<Source, Standing>, BTreeMap<Source, Standing>) {
        let parts = if self.result {
            part_standings(case)
        } else {
            BTreeMap::new()
        };
        (parts, assumption_standings(case, self.told_apart))
    }
}

/// What stands of the decision of a case, part by part; nothing while it is not decided.
pub(super) fn part_standings(case: &CaseState) -> BTreeMap<Source, Standing> {
    let (Some(case_id), Some(decision)) = (&case.case_id, &case.decision) else {
        return BTreeMap::new();
    };
    let [risk_score, recommendation, clauses] = PARTS;
    let outcome = &decision.outcome;
    let named = [risk_score, recommendation].map(str::to_owned);
    let of_clauses = outcome
        .clauses
        .keys()
        .map(|kind| format!("{clauses}{kind}"));
    let parts = named.into_iter().chain(of_clauses);
    let values = parts.filter_map(|part| {
        let value = part_of(outcome, &part)?;
        Some((part, value))
    });
    // A version in which the result is the same as before is no change for whoever has used it.
    let mut changes = case.changes.iter().rev();
    let changed = changes.find(|(_, change)| !change.changed.is_empty());
    let standing = Standing {
        values: values.collect(),
        confidence: None,
        version: Some(changed.map_or(1, |(_, change)| change.version)),
    };
    BTreeMap::from([(Source::Decision(case_id.token()), standing)])
}

/// What stands of the assumptions that debates were about. Left out is what `told_apart` has decided, where its own end is told of.
///
/// A debate may have ended before its case has its conflicts, and only by them it is known what the debate was about.
pub fn assumption_standings(
    case: &CaseState,
    told_apart: Option<&DebateId>,
) -> BTreeMap<Source, Standing> {
    let mut standings: BTreeMap<Source, Standing> = ended(case)
        .into_iter()
        .flat_map(|debate| own_standings(case, debate))
        .filter(|(source, _)| matches!(source, Source::Assumption(_)))
        .collect();
    if let Some(debate) = told_apart {
        let of_it = own_standings(case, debate);
        standings.retain(|source, _| !of_it.contains_key(source));
    }
    standings
}

/// What stands in the case of whatever its analyses use.
pub fn all_standings(case: &CaseState, graph: &Graph) -> BTreeMap<Source, Standing> {
    let debates = ended(case).into_iter();
    let of_debates = debates.flat_map(|debate| own_standings(case, debate));
    let all = of_debates.chain(part_standings(case));
    all.filter(|(source, _)| graph.dependants(source).next().is_some())
        .collect()
}
