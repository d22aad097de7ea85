//! Runs: each follows from a report or another run, each required analysis of its plan comes to one end, is asked for once and done once,
//! and the figures that come of it stand in the decision.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::aggregates::case::{CaseInput, CaseMachine};
use concord_domain::aggregates::impact::{
    ImpactInput, ImpactMachine, StartRerun, StepResult, all_standings,
};
use concord_domain::machine::Versioned;
use concord_domain::rules::impact::estimate::Standing;
use concord_domain::rules::impact::graph::{Graph, Source};
use concord_events::{
    Aggregate, CaseEvent, ImpactEvent, RerunNext, RerunOutcome, RerunStarted, RerunStepEnded,
    StoredEvent, TaskEvent, TaskOutcome,
};
use concord_wire::payload::Status;
use concord_wire::{AgentId, Token};

use super::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (case, records) in &archive.analyses {
        let mut runs: BTreeMap<u32, Steps> = BTreeMap::new();
        for record in records {
            let (number, next, of, ended) = match &record.event {
                ImpactEvent::RerunStarted(started) => {
                    let of = started.plan.required.len();
                    (started.run, &started.next, Some(of), None)
                }
                ImpactEvent::RerunStepEnded(ended) => {
                    (ended.run, &ended.next, None, Some(ended.step))
                }
                _ => continue,
            };
            let run = runs.entry(number).or_default();
            run.of = of.unwrap_or(run.of);
            run.follow(next, ended);
        }
        for (number, run) in &runs {
            run.check(&format!("run {number} of {case}"), violations);
        }
    }
}

/// How many runs have ended, how many began because of an override, and how many analyses were done again.
pub(in crate::check) fn counts(archive: &Archive) -> (u64, u64, u64) {
    let (mut runs, mut done) = (0, 0);
    let reports = archive.analyses.values().flatten();
    let overrides: BTreeSet<_> = reports
        .filter(|record| match &record.event {
            ImpactEvent::Assessed(assessed) => assessed.status == Some(Status::Overridden),
            _ => false,
        })
        .map(|record| &record.meta.event_id)
        .collect();
    let all = archive.analyses.values().flatten();
    let of_overrides = all.filter(|record| {
        matches!(record.event, ImpactEvent::RerunStarted(_))
            && overrides.contains(&record.meta.cause)
    });
    let of_overrides = of_overrides.count() as u64;
    for record in archive.analyses.values().flatten() {
        let (next, was_done) = match &record.event {
            ImpactEvent::RerunStarted(started) => (&started.next, false),
            ImpactEvent::RerunStepEnded(ended) => {
                let failed = matches!(ended.outcome, RerunOutcome::Failed { .. });
                (&ended.next, !failed)
            }
            _ => continue,
        };
        runs += u64::from(next.end.is_some());
        done += u64::from(was_done);
    }
    (runs, of_overrides, done)
}

/// What became of the steps of a run: how often each was asked for, and how often each has come to an end.
#[derive(Default)]
struct Steps {
    of: usize,
    asked: BTreeMap<u32, u32>,
    ended: BTreeMap<u32, u32>,
    is_over: bool,
}

impl Steps {
    fn follow(&mut self, next: &RerunNext, ended: Option<u32>) {
        for asked in &next.ask {
            *self.asked.entry(asked.step).or_default() += 1;
        }
        let left = next.not_needed.iter().chain(&next.blocked);
        for step in left.copied().chain(ended) {
            *self.ended.entry(step).or_default() += 1;
        }
        self.is_over |= next.end.is_some();
    }

    fn check(&self, run: &str, violations: &mut Vec<String>) {
        if !self.is_over || self.ended.len() != self.of {
            let (ended, of) = (self.ended.len(), self.of);
            violations.push(format!(
                "reruns: {ended} of {of} required steps of {run} have ended"
            ));
        }
        let all = [("asked for", &self.asked), ("ended", &self.ended)];
        for (what, steps) in all {
            for (step, times) in steps.iter().filter(|(_, times)| **times != 1) {
                violations.push(format!(
                    "reruns: step {step} of {run} was {what} {times} times"
                ));
            }
        }
    }
}

/// The run that follows from a report or the end of another run, with what stood in the case at any time before.
pub(super) fn started(
    archive: &Archive,
    record: &StoredEvent<ImpactEvent>,
    started: &RerunStarted,
) -> Vec<ImpactInput> {
    let is_cause = archive
        .analyses
        .get(&record.meta.id)
        .is_some_and(|all| all.iter().any(|one| one.meta.event_id == record.meta.cause));
    let Some(opened_by) = opener(archive, &record.meta.id).filter(|_| is_cause) else {
        return Vec::new();
    };
    let inputs = standings(archive, record).into_iter().map(|standings| {
        ImpactInput::Start(Box::new(StartRerun {
            case_id: started.case_id.clone(),
            by: started.by.clone(),
            opened_by: opened_by.clone(),
            standings,
        }))
    });
    inputs.collect()
}

/// The end of the task that a step of a run is; or why there is no such task.
pub(super) fn step_ended(
    archive: &Archive,
    record: &StoredEvent<ImpactEvent>,
    ended: &RerunStepEnded,
) -> Vec<ImpactInput> {
    let result = match archive.events.get(&record.meta.cause) {
        Some((Aggregate::Task, sequence, bytes)) => {
            let task = StoredEvent::<TaskEvent>::decode(bytes, *sequence).ok();
            let of_step =
                Token::derived(&format!("{}/{}/{}", ended.case_id, ended.run, ended.step));
            let task = task.filter(|task| task.meta.id.as_str() == format!("rerun-{of_step}"));
            match task.as_ref().and_then(|task| task.event.end()) {
                Some(end) => match &end.outcome {
                    TaskOutcome::Completed { result, .. } => Ok(result.clone()),
                    TaskOutcome::Failed { why, .. } => Err(why.clone()),
                    TaskOutcome::Cancelled { by, why } => {
                        Err(format!("{by} has cancelled it: {why}"))
                    }
                },
                None => return Vec::new(),
            }
        }
        Some(_) => return Vec::new(),
        // There could be no task: its author is not on the register.
        None => match &ended.outcome {
            RerunOutcome::Failed { why } => Err(why.clone()),
            RerunOutcome::Changed | RerunOutcome::Unchanged => return Vec::new(),
        },
    };
    let inputs = standings(archive, record).into_iter().map(|standings| {
        ImpactInput::StepEnded(Box::new(StepResult {
            run: ended.run,
            step: ended.step,
            result: result.clone(),
            standings,
        }))
    });
    inputs.collect()
}

/// The figures of a run that is over, as its case is given them.
pub(in crate::check) fn figures(
    archive: &Archive,
    record: &StoredEvent<CaseEvent>,
) -> Option<CaseInput> {
    let mut analyses = Versioned::<ImpactMachine>::default();
    let mut end = None;
    for one in archive.analyses.get(&record.meta.id)? {
        analyses.apply(one.clone());
        if one.meta.event_id == record.meta.cause {
            end = Some(one);
            break;
        }
    }
    let (run, next) = match &end?.event {
        ImpactEvent::RerunStarted(started) => (started.run, &started.next),
        ImpactEvent::RerunStepEnded(ended) => (ended.run, &ended.next),
        _ => return None,
    };
    next.end.as_ref()?;
    Some(CaseInput::Figures {
        run,
        figures: (*analyses.state.figures).clone(),
    })
}

fn opener(archive: &Archive, case: &Token) -> Option<AgentId> {
    let records = archive.cases.get(case)?;
    records.iter().find_map(|record| match &record.event {
        CaseEvent::Opened(opened) => Some(opened.opened_by.clone()),
        _ => None,
    })
}

/// What stood in the case of whatever analyses use, at any time before: the coordinator has read both at some time.
fn standings(
    archive: &Archive,
    record: &StoredEvent<ImpactEvent>,
) -> Vec<BTreeMap<Source, Standing>> {
    let mut analyses = Versioned::<ImpactMachine>::default();
    let mut graphs: Vec<Graph> = Vec::new();
    let of_impact = archive.analyses.get(&record.meta.id).into_iter().flatten();
    for one in of_impact.take_while(|one| one.sequence < record.sequence) {
        analyses.apply(one.clone());
        graphs.push((*analyses.state.graph).clone());
    }
    let mut case = Versioned::<CaseMachine>::default();
    let mut all: Vec<BTreeMap<Source, Standing>> = Vec::new();
    let of_case = archive.cases.get(&record.meta.id).into_iter().flatten();
    for one in of_case.take_while(|one| one.sequence < record.sequence) {
        case.apply(one.clone());
        for graph in &graphs {
            let standings = all_standings(&case.state, graph);
            if !all.contains(&standings) {
                all.push(standings);
            }
        }
    }
    all.reverse();
    all
}
