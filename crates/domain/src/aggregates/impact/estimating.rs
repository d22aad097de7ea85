//! Agents are asked what becomes of figures, and complete a report by their answers.
//!
//! An answer counts once: each question has a number, and is open until its end is recorded. What an agent says holds for the version
//! of the analysis and the values for which it was asked, so it answers the same question in a later report and in the plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{
    AskedEstimate, EstimateOutcome, ImpactAssessed, ImpactEstimated, ImpactEvent, StoredEvent,
};
use concord_wire::payload::{Dependency, Figure};
use concord_wire::{Timestamp, Token};
use serde::Deserialize;
use serde_json::Value;

use super::ImpactState;
use super::assess::{RULES, standings};
use crate::rules::impact::estimate::{Asked, Standing, number};
use crate::rules::impact::graph::{AgentEstimate, Graph, Source};
use crate::rules::impact::report::{assess, estimates, report};
use crate::rules::size_budget::truncate;

/// Most estimates that are asked for in one event; of what is more, there is no estimate.
const ASKED_MAX: usize = 64;

/// A question that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Awaited {
    asked: AskedEstimate,
    /// The report that it belongs to, by its number.
    report: u32,
    assessed: Arc<ImpactAssessed>,
}

/// What came of a question to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateResult {
    /// The number of the question.
    pub estimate: u32,
    /// What the agent has answered, or why it has not.
    pub result: Result<Value, String>,
}

/// An answer.
#[derive(Deserialize)]
struct Answer {
    estimate: Figure,
    #[serde(default)]
    confidence: Option<f64>,
}

impl ImpactState {
    pub(super) fn await_estimates(&mut self, report: u32, assessed: &Arc<ImpactAssessed>) {
        for asked in &assessed.ask {
            self.questions = self.questions.max(asked.estimate);
            let awaited = Awaited {
                asked: asked.clone(),
                report,
                assessed: Arc::clone(assessed),
            };
            self.awaited.insert(asked.estimate, Arc::new(awaited));
        }
    }

    pub(super) fn estimated(&mut self, estimated: ImpactEstimated) {
        if let Some(awaited) = self.awaited.remove(&estimated.estimate) {
            keep(
                Arc::make_mut(&mut self.graph),
                &awaited.asked,
                &estimated.outcome,
            );
        }
        self.await_estimates(estimated.report, &Arc::new(estimated.assessed));
    }
}

fn keep(graph: &mut Graph, asked: &AskedEstimate, outcome: &EstimateOutcome) {
    let estimate = AgentEstimate {
        uses: asked.uses.clone(),
        result: match outcome {
            EstimateOutcome::Given { figure, confidence } => Ok((figure.clone(), *confidence)),
            EstimateOutcome::Failed { why } => Err(why.clone()),
        },
    };
    let version = (&asked.analysis_id, asked.version);
    graph.keep_estimate(version, &asked.metric, estimate);
}

/// The questions that these changes lead to, with the next numbers; what is asked already for the report
/// of the question that has ended is not asked again.
pub(super) fn asks(
    state: &ImpactState,
    graph: &Graph,
    changed: &BTreeMap<Source, Standing>,
    ended: Option<&Awaited>,
) -> Vec<AskedEstimate> {
    let last = state.questions;
    let is_open = |id: &Token, metric: &str, uses: &[Dependency]| {
        let mut open = state.awaited.values();
        open.any(|one| {
            let asked = &one.asked;
            ended.is_some_and(|ended| {
                one.report == ended.report && one.asked.estimate != ended.asked.estimate
            }) && (
                &asked.analysis_id,
                asked.metric.as_str(),
                asked.uses.as_slice(),
            ) == (id, metric, uses)
        })
    };
    let mut asks = Vec::new();
    for (id, estimated) in estimates(graph, changed, &[]) {
        let version = graph.get(&id).map_or(0, |one| one.version);
        for (metric, state) in estimated.asked {
            let Asked::Awaited {
                agent,
                within_ms,
                uses,
            } = state
            else {
                continue;
            };
            if is_open(&id, &metric, &uses) || asks.len() >= ASKED_MAX {
                continue;
            }
            let place = u32::try_from(asks.len()).unwrap_or(u32::MAX);
            asks.push(AskedEstimate {
                estimate: last.saturating_add(place).saturating_add(1),
                analysis_id: id.clone(),
                version,
                metric,
                agent_id: agent,
                within_ms,
                uses,
            });
        }
    }
    asks
}

/// The event by which a question ends; none where it has ended already.
pub(super) fn estimated(state: &ImpactState, result: &EstimateResult) -> Option<ImpactEstimated> {
    let awaited = state.awaited.get(&result.estimate)?;
    let asked = &awaited.asked;
    let old = state.graph.get(&asked.analysis_id);
    let old = old.and_then(|one| one.published.figures.get(&asked.metric));
    let outcome = match outcome(old, &result.result) {
        Ok((figure, confidence)) => EstimateOutcome::Given { figure, confidence },
        Err(why) => EstimateOutcome::Failed {
            why: truncate::words(&format!("{}: {why}", asked.agent_id)),
        },
    };
    let mut graph = (*state.graph).clone();
    keep(&mut graph, asked, &outcome);
    let before = &awaited.assessed;
    let standings = standings(&before.changed);
    let ask = asks(state, &graph, &standings, Some(awaited));
    let others = state.awaited.iter();
    let mut others = others.filter(|(number, _)| **number != result.estimate);
    let is_complete = ask.is_empty() && !others.any(|(_, one)| one.report == awaited.report);
    let impacts = assess(&graph, &standings, &[]);
    Some(ImpactEstimated {
        estimate: result.estimate,
        outcome,
        report: awaited.report,
        assessed: ImpactAssessed {
            report: report(before.report.changed_assumption.clone(), impacts),
            ask,
            rules: Some(RULES),
            ..(**before).clone()
        },
        is_complete,
    })
}

/// The reports of a case with their times, each as it is with what the agents have said that were asked.
pub fn reports(
    records: impl IntoIterator<Item = StoredEvent<ImpactEvent>>,
) -> Vec<(Timestamp, ImpactAssessed)> {
    let mut reports: Vec<(Timestamp, ImpactAssessed)> = Vec::new();
    for record in records {
        match record.event {
            ImpactEvent::Assessed(assessed) => reports.push((record.meta.at, *assessed)),
            ImpactEvent::Estimated(estimated) => {
                let number = usize::try_from(estimated.report).unwrap_or(usize::MAX);
                if let Some((_, assessed)) = reports.get_mut(number.wrapping_sub(1)) {
                    *assessed = estimated.assessed;
                }
            }
            ImpactEvent::Published(_)
            | ImpactEvent::RerunStarted(_)
            | ImpactEvent::RerunStepEnded(_) => {}
        }
    }
    reports
}

/// What an agent has said; else why it cannot be used.
fn outcome(old: Option<&Figure>, result: &Result<Value, String>) -> Result<(Figure, f64), String> {
    let result = result.as_ref().map_err(Clone::clone)?;
    let answer = Answer::deserialize(result)
        .map_err(|error| format!("it has answered with no estimate ({error})"))?;
    let confidence = answer.confidence.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&confidence) {
        return Err(format!(
            "its confidence of {confidence} is not between 0 and 1"
        ));
    }
    let figure = match answer.estimate {
        Figure::Text(text) => Figure::Text(truncate::words(&text)),
        number => number,
    };
    let was_number = old.is_some_and(|old| number(old).is_some());
    let is_number = number(&figure);
    if was_number && is_number.is_none_or(|one| !one.is_finite()) {
        return Err(format!("{figure} is no number"));
    }
    Ok((figure, confidence))
}
