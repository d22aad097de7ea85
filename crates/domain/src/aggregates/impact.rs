//! The analyses of a case and what they rest on. Owned by the coordinator; its id is that of the
//! case.
//!
//! | input   | no such analysis | one of the sender          | one of somebody else | the same message again  |
//! |---------|------------------|----------------------------|----------------------|-------------------------|
//! | Publish | published [1]    | published: a new version [1] | refused            | ignored: repetition [2] |
//!
//! | input   | analyses rest on it | none does, or all used what stands | the same event again |
//! |---------|---------------------|------------------------------------|----------------------|
//! | Moved   | assessed            | ignored: already done              | ignored: repetition  |
//!
//!
//! | input     | no run is under way                | a run is under way                              |
//! |-----------|------------------------------------|-------------------------------------------------|
//! | Start     | rerun_started; refused: nothing is to be done again | refused                        |
//! | StepEnded | ignored: already done              | rerun_step_ended; ignored: the step was not asked, or has ended |
//!
//! | input     | the question is open | it has ended, or was never asked |
//! |-----------|----------------------|----------------------------------|
//! | Estimated | estimated [3]        | ignored: already done            |
//!
//! [3] What is no number, no confidence or nothing at all is recorded with the reason.
//!
//! [1] Refused where it uses an analysis, or a figure of one, that there is not; where its
//! dependencies would close a cycle; and beyond the bounds. [2] Another message of the same sender
//! under the same id is refused.
//!
//! A published analysis says of each dependency the value that it used. Where the sender does not,
//! it is the one that stands then. So a later change is measured against what was used, whatever
//! happened in between. Whether somebody is in the case is said by
//! [`check_member`](crate::aggregates::case::check_member), and what its decisions are by
//! [`with_decisions`]: the caller asks both first.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{
    AnalysisPublished, Heard, ImpactAssessed, ImpactEvent, RerunOutcome, RerunStepEnded,
    RerunVersion, StoredEvent,
};
use concord_wire::payload::notification::RerunProgress;
use concord_wire::payload::{ImpactReport, PublishAnalysis, notification};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};
use serde_json::json;

use super::heard_before::HeardBefore;
use super::review_queue::Recent;
use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::impact::estimate::Standing;
use crate::rules::impact::graph::{Analysis, Graph, Source};

mod assess;
mod decisions;
mod estimating;
mod figures;
mod publish;
pub mod rerun;

pub use assess::{DecisionMoved, TOLD_MAX, moved};
pub use decisions::{
    MovedBy, all_standings, assumption_standings, debate_standings, moved_by, with_decisions,
};
pub use estimating::{EstimateResult, reports};
pub use figures::RunFigures;
pub use rerun::{Run, StartRerun, StepResult};

/// Most analyses of a case.
pub const ANALYSES_MAX: usize = 10_000;
/// How often one author publishes in a case at most: every version is kept.
pub const AUTHOR_VERSIONS_MAX: u32 = 20_000;
/// Most bytes of all versions that one author publishes in a case.
pub const AUTHOR_BYTES_MAX: u64 = 16 << 20;
/// Most analyses that a notification names; the others are counted.
const TOLD_IMPACTS_MAX: usize = 20;
/// How many messages are remembered, to recognise a repetition.
const CAUSES_MAX: usize = 1_024;

/// The state machine of a case's analyses.
#[derive(Debug, Clone, Copy)]
pub struct ImpactMachine;

/// What one author has published, all versions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// How many versions.
    pub versions: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// The analyses of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpactState {
    /// The case; none before the first analysis.
    pub case_id: Option<CaseId>,
    /// The analyses and what they use. Shared: a state is copied whenever it is read.
    pub graph: Arc<Graph>,
    /// The last run, which may have ended.
    pub run: Option<Arc<Run>>,
    /// How many runs there were.
    pub runs: u32,
    /// What the runs have come to, by the id of the analysis.
    pub figures: Arc<BTreeMap<Token, RunFigures>>,
    /// Whether something has changed since the last run began.
    pub changed_since: bool,
    /// How many reports there were.
    pub reports: u32,
    /// How many estimates were asked for.
    questions: u32,
    /// The estimates that are awaited.
    awaited: BTreeMap<u32, Arc<estimating::Awaited>>,
    /// What each author has published.
    pub authors: BTreeMap<AgentId, Written>,
    /// What was last reported of each assumption.
    pub(super) reported: BTreeMap<Source, Standing>,
    causes: HeardBefore,
    assessed: Recent<MessageId, ()>,
}

impl Default for ImpactState {
    fn default() -> Self {
        Self {
            case_id: None,
            graph: Arc::default(),
            run: None,
            runs: 0,
            figures: Arc::default(),
            changed_since: false,
            reports: 0,
            questions: 0,
            awaited: BTreeMap::new(),
            authors: BTreeMap::new(),
            reported: BTreeMap::new(),
            causes: HeardBefore::new(CAUSES_MAX),
            assessed: Recent::new(CAUSES_MAX),
        }
    }
}

impl ImpactState {
    /// Whether a run has not ended.
    pub fn is_under_way(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_over())
    }

    /// Whether an agent is still to answer: a run has not ended, or an estimate is awaited.
    pub fn is_awaiting(&self) -> bool {
        self.is_under_way() || !self.awaited.is_empty()
    }

    fn misplaced_step(&self, ended: &RerunStepEnded) -> Option<String> {
        let run = self.run.as_ref().filter(|run| run.number == ended.run);
        let is_asked = run.is_some_and(|run| run.is_asked(ended.step));
        (!is_asked).then(|| format!("Step {} of run {} was not asked.", ended.step, ended.run))
    }

    fn step_ended(&mut self, ended: RerunStepEnded, at: Timestamp) {
        if let Some(version) = &ended.published {
            put_version(Arc::make_mut(&mut self.graph), version, at);
        }
        self.run_ended(ended.run, ended.next.end.as_ref());
        if let Some(run) = &mut self.run {
            Arc::make_mut(run).ended(ended.step, &ended.outcome, ended.next);
        }
    }

    fn published(&mut self, published: AnalysisPublished, at: Timestamp) {
        let AnalysisPublished {
            case_id,
            version,
            analysis,
            heard,
        } = published;
        self.case_id = Some(case_id);
        let written = self.authors.entry(heard.agent_id.clone()).or_default();
        written.versions = written.versions.saturating_add(1);
        written.bytes = written.bytes.saturating_add(publish::bytes_of(&analysis));
        self.causes.remember(&heard);
        let analysis = Analysis::new(analysis, version, heard.agent_id, at);
        Arc::make_mut(&mut self.graph).put(analysis);
    }

    /// The version of an analysis; 0 where there is none.
    pub fn version_of(&self, analysis: &Token) -> u32 {
        let known = self.graph.get(analysis);
        known.map_or(0, |known| known.version)
    }
}

/// One input of a case's analyses.
#[derive(Debug, Clone, PartialEq)]
pub enum ImpactInput {
    /// An agent in the case publishes an analysis.
    Publish(Box<ReceivedAnalysis>),
    /// A decision of the case is another one now.
    Moved(Box<DecisionMoved>),
    /// Somebody wants what must be done again to be done again.
    Start(Box<StartRerun>),
    /// A step of a run has ended.
    StepEnded(Box<StepResult>),
    /// An agent was asked for an estimate, and has answered or has not.
    Estimated(EstimateResult),
}

/// An analysis, as the coordinator received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedAnalysis {
    /// The message that brought it.
    pub heard: Heard,
    /// The case.
    pub case_id: CaseId,
    /// The analysis. The caller has checked its form, and its decisions against the case.
    pub analysis: PublishAnalysis,
}

impl Machine for ImpactMachine {
    type State = ImpactState;
    type Event = ImpactEvent;
    type Input = ImpactInput;

    fn decide(
        state: &ImpactState,
        context: &Context,
        input: &ImpactInput,
    ) -> Decision<ImpactEvent> {
        match input {
            ImpactInput::Publish(received) => publish(state, received),
            ImpactInput::Moved(_) if state.assessed.contains(&context.cause) => {
                Decision::Ignore(Ignored::Repetition)
            }
            ImpactInput::Moved(moved) => match assess::assessed(state, moved) {
                Some(assessed) => Decision::Append(ImpactEvent::Assessed(Box::new(assessed))),
                None => Decision::Ignore(Ignored::AlreadyDone),
            },
            ImpactInput::Start(_) if state.assessed.contains(&context.cause) => {
                Decision::Ignore(Ignored::Repetition)
            }
            ImpactInput::Start(asked) => match rerun::start(state, asked) {
                Ok(started) => Decision::Append(ImpactEvent::RerunStarted(Box::new(started))),
                Err(fault) => Decision::Reject(fault),
            },
            ImpactInput::Estimated(result) => match estimating::estimated(state, result) {
                Some(estimated) => Decision::Append(ImpactEvent::Estimated(Box::new(estimated))),
                None => Decision::Ignore(Ignored::AlreadyDone),
            },
            ImpactInput::StepEnded(ended) => match rerun::step_ended(state, ended) {
                Decision::Append(ended) => {
                    Decision::Append(ImpactEvent::RerunStepEnded(Box::new(ended)))
                }
                Decision::Ignore(why) => Decision::Ignore(why),
                Decision::Reject(fault) => Decision::Reject(fault),
            },
        }
    }

    fn is_taken(state: &ImpactState, id: &MessageId, sender: &AgentId) -> bool {
        state.causes.is_taken(id, sender)
    }

    fn apply(state: &mut ImpactState, record: StoredEvent<ImpactEvent>) {
        let meta = record.meta;
        match record.event {
            ImpactEvent::Published(published) => state.published(*published, meta.at),
            ImpactEvent::Assessed(assessed) => {
                state.assessed.insert(meta.cause, ());
                let standings = assess::standings(&assessed.changed).into_iter();
                let is_assumption = |source: &Source| matches!(source, Source::Assumption(_));
                let of_assumptions = standings.filter(|(source, _)| is_assumption(source));
                state.reported.extend(of_assumptions);
                state.changed_since = true;
                state.reports = state.reports.saturating_add(1);
                state.await_estimates(state.reports, &Arc::new(*assessed));
            }
            ImpactEvent::Estimated(estimated) => state.estimated(*estimated),
            ImpactEvent::RerunStarted(started) => {
                state.assessed.insert(meta.cause, ());
                state.runs = started.run;
                state.changed_since = false;
                state.run_ended(started.run, started.next.end.as_ref());
                state.run = Some(Arc::new(Run::new(*started, meta.at)));
            }
            ImpactEvent::RerunStepEnded(ended) => state.step_ended(*ended, meta.at),
        }
    }

    fn effects(record: &StoredEvent<ImpactEvent>) -> Vec<Effect> {
        match &record.event {
            ImpactEvent::Published(published) => vec![Effect::Respond {
                to: published.heard.agent_id.clone(),
                request_id: published.heard.message_id.clone(),
                result: json!({
                    "analysis_id": published.analysis.analysis_id, "version": published.version,
                    "depends_on": published.analysis.depends_on,
                }),
            }],
            ImpactEvent::Assessed(assessed) => tell(assessed),
            ImpactEvent::Estimated(estimated) if estimated.is_complete => tell(&estimated.assessed),
            ImpactEvent::Estimated(_) => Vec::new(),
            ImpactEvent::RerunStarted(started) => tell_progress(
                &started.told,
                &RerunProgress {
                    run: started.run,
                    analysis_id: None,
                    failed: None,
                    done: 0,
                    of: u32::try_from(started.plan.required.len()).unwrap_or(u32::MAX),
                    is_over: started.next.end.is_some(),
                },
            ),
            ImpactEvent::RerunStepEnded(ended) => tell_progress(
                &ended.told,
                &RerunProgress {
                    run: ended.run,
                    analysis_id: Some(ended.analysis_id.clone()),
                    failed: match &ended.outcome {
                        RerunOutcome::Failed { why } => Some(why.clone()),
                        RerunOutcome::Changed | RerunOutcome::Unchanged => None,
                    },
                    done: ended.done,
                    of: ended.of,
                    is_over: ended.next.end.is_some(),
                },
            ),
        }
    }

    fn case_of(record: &StoredEvent<ImpactEvent>) -> Option<CaseId> {
        Some(match &record.event {
            ImpactEvent::Published(published) => published.case_id.clone(),
            ImpactEvent::Assessed(assessed) => assessed.case_id.clone(),
            ImpactEvent::Estimated(estimated) => estimated.assessed.case_id.clone(),
            ImpactEvent::RerunStarted(started) => started.case_id.clone(),
            ImpactEvent::RerunStepEnded(ended) => ended.case_id.clone(),
        })
    }

    fn misplaced(before: &ImpactState, event: &ImpactEvent) -> Option<String> {
        let published = match event {
            ImpactEvent::Published(published) => published,
            ImpactEvent::RerunStepEnded(ended) => return before.misplaced_step(ended),
            ImpactEvent::Estimated(estimated) => {
                let number = estimated.estimate;
                let is_awaited = before.awaited.contains_key(&number);
                return (!is_awaited).then(|| format!("The estimate {number} is not awaited."));
            }
            ImpactEvent::RerunStarted(started) => {
                let next = before.runs.saturating_add(1);
                return (started.run != next || before.is_under_way())
                    .then(|| format!("It is run {}, and {next} is due.", started.run));
            }
            ImpactEvent::Assessed(_) => {
                let is_empty = before.graph.is_empty();
                return is_empty.then(|| "There is no analysis that it could be about.".to_owned());
            }
        };
        let analysis = &published.analysis;
        let next = before.version_of(&analysis.analysis_id).saturating_add(1);
        if published.version != next {
            return Some(format!(
                "It is version {} of {}, and {next} is due.",
                published.version, analysis.analysis_id
            ));
        }
        let cycle = before
            .graph
            .cycle(&analysis.analysis_id, &analysis.depends_on)?;
        Some(format!("It closes a cycle: {}.", publish::written(&cycle)))
    }

    fn recount(after: &ImpactState, record: &StoredEvent<ImpactEvent>) -> Vec<String> {
        match &record.event {
            ImpactEvent::Published(_)
            | ImpactEvent::RerunStarted(_)
            | ImpactEvent::RerunStepEnded(_) => Vec::new(),
            ImpactEvent::Assessed(assessed) => assess::recount(after, assessed),
            ImpactEvent::Estimated(estimated) => assess::recount(after, &estimated.assessed),
        }
    }
}

fn publish(state: &ImpactState, received: &ReceivedAnalysis) -> Decision<ImpactEvent> {
    if let Some(repeated) = state.causes.repetition(&received.heard) {
        return repeated;
    }
    match publish::publish(state, received) {
        Ok(published) => Decision::Append(ImpactEvent::Published(Box::new(published))),
        Err(fault) => Decision::Reject(fault),
    }
}

/// Puts a version that came of a run into its place.
fn put_version(graph: &mut Graph, done: &RerunVersion, at: Timestamp) {
    let RerunVersion {
        version,
        author,
        analysis,
    } = done.clone();
    graph.put(Analysis::new(analysis, version, author, at));
}

fn tell_progress(told: &[AgentId], progress: &RerunProgress) -> Vec<Effect> {
    let each = told.iter();
    each.map(|to| Effect::tell(to.clone(), progress.clone()))
        .collect()
}

/// Each is addressed alone, so that it also reaches agents that are hosted; they are told the largest changes.
fn tell(assessed: &ImpactAssessed) -> Vec<Effect> {
    let mut report: ImpactReport = assessed.report.clone();
    let omitted = report.impacts.len().saturating_sub(TOLD_IMPACTS_MAX);
    report.impacts.truncate(TOLD_IMPACTS_MAX);
    let omitted = u32::try_from(omitted).unwrap_or(u32::MAX);
    report.impacts_omitted = report.impacts_omitted.saturating_add(omitted);
    let data = notification::ImpactAssessed {
        debate_id: assessed.debate_id.clone(),
        status: assessed.status,
        by: assessed.by.clone(),
        report,
    };
    let told = assessed.told.iter();
    told.map(|to| Effect::tell(to.clone(), data.clone()))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
