//! Doing analyses again: a run of the plan, step by step.
//!
//! | step       | when                                                                   |
//! |------------|------------------------------------------------------------------------|
//! | waiting    | something that it uses is still to be done                             |
//! | asked      | its author has it as a task                                            |
//! | changed    | done, with other figures                                               |
//! | unchanged  | done, with the same figures                                            |
//! | not needed | nothing that it uses has changed: what it waited for came out the same |
//! | failed     | its author did not do it, or gave what is no result                    |
//! | blocked    | something that it uses has failed                                      |
//!
//! Each event says what follows: whom to ask, what is not needed, what is blocked. A result counts
//! only for a step that is asked, so each step ends once, however often its end is heard of. What an
//! analysis used is what its author was asked with: a decision that changes meanwhile is a change for
//! the next run.

use std::collections::BTreeMap;

use concord_events::{
    AskedRerun, RerunEnd, RerunNext, RerunOutcome, RerunStarted, RerunStepEnded, RerunVersion,
};
use concord_wire::payload::{Dependency, Figure, PublishAnalysis, RerunPlan, RerunStrategy};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, Timestamp, Token};
use serde::Deserialize;
use serde_json::Value;

use super::ImpactState;
use crate::machine::{Decision, Ignored};
use crate::rules::impact::estimate::{Standing, estimate, refreshed, same};
use crate::rules::impact::graph::{Graph, Source};
use crate::rules::impact::models::check_models;
use crate::rules::impact::plan::plan;
use crate::rules::impact::report::assess;
use crate::rules::size_budget::truncate;

/// Most analyses that are asked for at the same time.
const ASKED_MAX: usize = 8;
/// By how much a confidence must move to be another one.
const SAME_CONFIDENCE: f64 = 1e-9;

/// How far a step of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Something that it uses is still to be done.
    Waiting,
    /// Its author has it as a task.
    Asked,
    /// It was done, with other figures.
    Changed,
    /// It was done, with the same figures.
    Unchanged,
    /// Nothing that it uses has changed.
    NotNeeded,
    /// It was not done.
    Failed,
    /// Something that it uses has failed.
    Blocked,
}

impl StepStatus {
    /// Whether nothing more happens to the step.
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Asked)
    }

    /// As a reader sees it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Asked => "asked",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::NotNeeded => "not needed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// A run of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its number, from 1.
    pub number: u32,
    /// Who asked for it.
    pub by: AgentId,
    /// What is done again.
    pub plan: RerunPlan,
    /// How far each step is.
    pub steps: Vec<StepStatus>,
    /// What each asked step was asked with.
    asked: BTreeMap<u32, AskedRerun>,
    /// Who is told how it goes.
    pub told: Vec<AgentId>,
    /// When it began.
    pub since: Timestamp,
}

impl Run {
    pub(super) fn new(started: RerunStarted, since: Timestamp) -> Self {
        let mut run = Self {
            number: started.run,
            by: started.by,
            steps: vec![StepStatus::Waiting; started.plan.required.len()],
            plan: started.plan,
            asked: BTreeMap::new(),
            told: started.told,
            since,
        };
        run.follow(started.next);
        run
    }

    pub(super) fn ended(&mut self, step: u32, outcome: &RerunOutcome, next: RerunNext) {
        self.set(step, status_of(outcome));
        self.asked.remove(&step);
        self.follow(next);
    }

    fn follow(&mut self, next: RerunNext) {
        for step in next.not_needed {
            self.set(step, StepStatus::NotNeeded);
        }
        for step in next.blocked {
            self.set(step, StepStatus::Blocked);
        }
        for asked in next.ask {
            self.set(asked.step, StepStatus::Asked);
            self.asked.insert(asked.step, asked);
        }
    }

    fn set(&mut self, step: u32, status: StepStatus) {
        let place = usize::try_from(step).ok();
        if let Some(slot) = place.and_then(|place| self.steps.get_mut(place)) {
            *slot = status;
        }
    }

    /// Whether every step has ended.
    pub fn is_over(&self) -> bool {
        self.steps.iter().all(|one| one.has_ended())
    }

    /// Whether this step was asked and has not ended.
    pub fn is_asked(&self, step: u32) -> bool {
        self.asked.contains_key(&step)
    }
}

fn status_of(outcome: &RerunOutcome) -> StepStatus {
    match outcome {
        RerunOutcome::Changed => StepStatus::Changed,
        RerunOutcome::Unchanged => StepStatus::Unchanged,
        RerunOutcome::Failed { .. } => StepStatus::Failed,
    }
}

/// A request to do again what must be.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRerun {
    /// The case.
    pub case_id: CaseId,
    /// Who asks; the caller has checked that they may.
    pub by: AgentId,
    /// Who opened the case, and is told how it goes.
    pub opened_by: AgentId,
    /// What stands in the case of whatever analyses use.
    pub standings: BTreeMap<Source, Standing>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// The run.
    pub run: u32,
    /// The step, by its place in the plan.
    pub step: u32,
    /// What its author gave, or why it gave nothing.
    pub result: Result<Value, String>,
    /// What stands in the case of whatever analyses use.
    pub standings: BTreeMap<Source, Standing>,
}

/// The plan for everything that rests on something that does not stand any more.
pub fn plan_now(graph: &Graph, standings: &BTreeMap<Source, Standing>) -> RerunPlan {
    let all: Vec<Source> = graph.sources().cloned().collect();
    plan(graph, &assess(graph, standings, &all))
}

pub(super) fn start(state: &ImpactState, asked: &StartRerun) -> Result<RerunStarted, Fault> {
    if let Some(run) = state.run.as_ref().filter(|run| !run.is_over()) {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!(
                "Run {} is under way, which {} has asked for.",
                run.number, run.by
            ),
            "Wait until it has ended: who asked for it and who opened the case are told (rerun_progress).",
        ));
    }
    let plan = plan_now(&state.graph, &asked.standings);
    if plan.required.is_empty() {
        return Err(Fault::invalid(
            "",
            "No analysis of this case must be done again.",
            "See concord impact graph for what rests on what, and concord impact plan for what is affected.",
        ));
    }
    let mut steps = vec![StepStatus::Waiting; plan.required.len()];
    let next = next(&state.graph, &plan, &mut steps, &asked.standings);
    // A service that has begun it by itself need not be told.
    let mut told = vec![asked.by.clone()];
    told.retain(|by| Service::parse(by.as_str()).is_err());
    if !told.contains(&asked.opened_by) {
        told.push(asked.opened_by.clone());
    }
    Ok(RerunStarted {
        case_id: asked.case_id.clone(),
        run: state.runs.saturating_add(1),
        by: asked.by.clone(),
        plan,
        next,
        told,
    })
}

pub(super) fn step_ended(state: &ImpactState, ended: &StepResult) -> Decision<RerunStepEnded> {
    let run = state.run.as_ref().filter(|run| run.number == ended.run);
    let Some((run, case_id)) = run.zip(state.case_id.as_ref()) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let place = usize::try_from(ended.step).ok();
    let planned = place.and_then(|place| run.plan.required.get(place));
    let (Some(asked), Some(planned)) = (run.asked.get(&ended.step), planned) else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    let done = match &ended.result {
        Ok(result) => done_again(state, &planned.analysis_id, asked, result),
        Err(why) => Err(truncate::words(why)),
    };
    let (outcome, published) = match done {
        Ok((published, true)) => (RerunOutcome::Changed, Some(published)),
        Ok((published, false)) => (RerunOutcome::Unchanged, Some(published)),
        Err(why) => (RerunOutcome::Failed { why }, None),
    };
    let mut graph = (*state.graph).clone();
    if let Some(version) = &published {
        super::put_version(&mut graph, version, Timestamp::default());
    }
    let mut steps = run.steps.clone();
    if let Some(slot) = place.and_then(|place| steps.get_mut(place)) {
        *slot = status_of(&outcome);
    }
    let next = next(&graph, &run.plan, &mut steps, &ended.standings);
    Decision::Append(RerunStepEnded {
        case_id: case_id.clone(),
        run: run.number,
        step: ended.step,
        analysis_id: planned.analysis_id.clone(),
        outcome,
        published,
        done: count(steps.iter().filter(|one| one.has_ended()).count()),
        of: count(steps.len()),
        next,
        told: run.told.clone(),
    })
}

/// What an author gives as the result of its task.
#[derive(Deserialize)]
struct Redone {
    #[serde(default)]
    figures: BTreeMap<String, Figure>,
    #[serde(default)]
    confidence: Option<f64>,
}

/// The new version of the analysis, and whether its result is another one; else why it is no result.
fn done_again(
    state: &ImpactState,
    id: &Token,
    asked: &AskedRerun,
    result: &Value,
) -> Result<(RerunVersion, bool), String> {
    let known = state.graph.get(id).ok_or("There is no such analysis.")?;
    let redone = Redone::deserialize(result)
        .map_err(|error| format!("It is no result of an analysis: {error}."))?;
    let old = &known.published;
    let analysis = PublishAnalysis {
        figures: redone.figures,
        confidence: redone.confidence.or(old.confidence),
        depends_on: as_asked(&old.depends_on, &asked.uses),
        ..old.clone()
    };
    let missing = old
        .figures
        .keys()
        .find(|name| !analysis.figures.contains_key(*name));
    if let Some(name) = missing {
        return Err(format!("Its result has no figure {name:?}."));
    }
    let checked = analysis
        .check("")
        .and_then(|()| check_models(&analysis, ""));
    checked.map_err(|fault| format!("Its result cannot be used: {}", fault.message))?;
    let is_same = |(name, now): (&String, &Figure)| {
        let before = old.figures.get(name);
        before.is_some_and(|before| same(before, now))
    };
    let same_confidence = match (old.confidence, analysis.confidence) {
        (Some(before), Some(now)) => (before - now).abs() <= SAME_CONFIDENCE,
        (before, now) => before == now,
    };
    // Of what has no figures nobody knows whether it is the same.
    let is_bare = analysis.figures.is_empty();
    let has_changed = is_bare || !same_confidence || !analysis.figures.iter().all(is_same);
    let version = RerunVersion {
        version: known.version.saturating_add(1),
        author: known.author.clone(),
        analysis,
    };
    Ok((version, has_changed))
}

/// What an analysis uses, with the values that its author was given. What the author has published meanwhile to use more or less stands.
fn as_asked(now: &[Dependency], asked: &[Dependency]) -> Vec<Dependency> {
    let asked = |one: &Dependency| {
        let is_it =
            |used: &&Dependency| (Source::of(used), &used.metric) == (Source::of(one), &one.metric);
        asked.iter().find(is_it).unwrap_or(one).clone()
    };
    now.iter().map(asked).collect()
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What follows in a run whose steps are so far; they are moved on.
fn next(
    graph: &Graph,
    plan: &RerunPlan,
    steps: &mut [StepStatus],
    standings: &BTreeMap<Source, Standing>,
) -> RerunNext {
    let most = match plan.strategy {
        RerunStrategy::Serial => 1,
        RerunStrategy::Parallel => ASKED_MAX,
    };
    let is_asked = |one: &&StepStatus| **one == StepStatus::Asked;
    let mut asked = steps.iter().filter(is_asked).count();
    let mut next = RerunNext::default();
    for (place, planned) in plan.required.iter().enumerate() {
        if steps.get(place) != Some(&StepStatus::Waiting) {
            continue;
        }
        let before = planned.after.iter().filter_map(|one| {
            let place = usize::try_from(*one).ok()?;
            steps.get(place).copied()
        });
        let before: Vec<StepStatus> = before.collect();
        let step = count(place);
        let is_lost = |one: &StepStatus| matches!(one, StepStatus::Failed | StepStatus::Blocked);
        let status = if before.iter().any(is_lost) {
            next.blocked.push(step);
            StepStatus::Blocked
        } else if !before.iter().all(|one| one.has_ended()) {
            continue;
        } else if let Some(uses) = what_is_due(graph, &planned.analysis_id, standings) {
            if asked >= most {
                continue;
            }
            asked += 1;
            next.ask.push(AskedRerun {
                step,
                analysis_id: planned.analysis_id.clone(),
                agent_id: planned.agent_id.clone(),
                rerun_minutes: planned.rerun_minutes,
                uses,
            });
            StepStatus::Asked
        } else {
            next.not_needed.push(step);
            StepStatus::NotNeeded
        };
        if let Some(slot) = steps.get_mut(place) {
            *slot = status;
        }
    }
    if steps.iter().all(|one| one.has_ended()) {
        let of = |status| count(steps.iter().filter(|one| **one == status).count());
        let all = plan.required.iter().zip(steps.iter());
        let changed = all.filter(|(_, status)| **status == StepStatus::Changed);
        next.end = Some(RerunEnd {
            with_other_figures: changed.map(|(step, _)| step.analysis_id.clone()).collect(),
            changed: of(StepStatus::Changed),
            unchanged: of(StepStatus::Unchanged),
            not_needed: of(StepStatus::NotNeeded),
            failed: of(StepStatus::Failed),
            blocked: of(StepStatus::Blocked),
        });
    }
    next
}

/// What an analysis would use, as it stands now; none where that is what it has used.
fn what_is_due(
    graph: &Graph,
    id: &Token,
    standings: &BTreeMap<Source, Standing>,
) -> Option<Vec<concord_wire::payload::Dependency>> {
    let analysis = graph.get(id)?;
    estimate(graph, analysis, standings, &BTreeMap::new())?;
    let uses = analysis.published.depends_on.iter();
    Some(uses.map(|used| refreshed(graph, used, standings)).collect())
}

#[cfg(test)]
mod tests;
