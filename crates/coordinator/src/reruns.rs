//! Doing analyses again: what a run asks for becomes tasks of the authors, and what comes of them becomes the next steps of the run.
//!
//! A task of a run bears an id that only this module gives, and is opened by the coordinator itself: what anybody else has opened
//! counts for no run.

use std::sync::Arc;

use bytes::Bytes;
use concord_domain::aggregates::case::{CaseInput, CaseMachine};
use concord_domain::aggregates::impact::{
    ImpactInput, ImpactMachine, StartRerun, StepResult, all_standings,
};
use concord_events::{AskedRerun, ImpactEvent, StoredEvent, TaskEvent, TaskOutcome};
use concord_runtime::delivery::HandleError;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::{Outcome, Ports};
use concord_wire::envelope::from_json;
use concord_wire::payload::{BidWeights, Criteria, Majority, OpenTask, Role, Task};
use concord_wire::subject::OPERATOR;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId, Priority, Token};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::estimates::QuestionOfReport;
use crate::shared::Shared;
use crate::tasks::Tasks;

/// What the ids of a run's tasks begin with. Nobody else opens a task under such an id.
pub(crate) const TASK_PREFIX: &str = "rerun-";
/// The kind of a run's tasks.
const TASK_TYPE: &str = "rerun_analysis";
/// The least time for a task, and how many times its stated time it has, in minutes.
const MINUTES_MIN: u64 = 10;
const TIMES: u64 = 2;

/// `rerun_analyses`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RerunAsked {
    case_id: CaseId,
}

/// Which step of which run a task is.
#[derive(Deserialize)]
struct StepOfRun {
    case_id: CaseId,
    run: u32,
    step: u32,
}

/// Answers `rerun_analyses`: `{"case_id", "run", "plan"}`; the run has begun. For whoever opened the case, reviewers and operators.
pub(crate) fn verb<P: Ports>(shared: &Shared<P>) -> Verb {
    api::verb(shared.clone(), |shared, call| async move {
        shared.rerun(call).await
    })
}

/// The id of the task for a step of a run or a question of a report, as `what` names it: always the same one.
pub(crate) fn task_id(what: &str) -> Result<Token, HandleError> {
    let made = Token::derived(what);
    let id = Token::new(format!("{TASK_PREFIX}{made}"));
    id.map_err(|error| Fault::invalid("", format!("No task can be named: {error}."), "").into())
}

fn terms(case_id: &CaseId, run: u32, task_id: Token, asked: &AskedRerun) -> OpenTask {
    let minutes = u64::from(asked.rerun_minutes).saturating_mul(TIMES);
    let minutes = minutes.max(MINUTES_MIN);
    let deadline_ms = minutes.saturating_mul(60_000);
    let input = json!({
        "case_id": case_id, "run": run, "step": asked.step, "analysis_id": asked.analysis_id, "uses": asked.uses,
    });
    let task = Task {
        kind: TASK_TYPE.to_owned(),
        title: format!("Do the analysis {} again.", asked.analysis_id),
        input,
    };
    task_of_one(task_id, task, asked.agent_id.clone(), deadline_ms)
}

/// A task of one agent.
pub(crate) fn task_of_one(
    task_id: Token,
    task: Task,
    agent: AgentId,
    deadline_ms: u64,
) -> OpenTask {
    OpenTask {
        task_id: Some(task_id),
        // Of one candidate it does not matter whose turn it is.
        strategy: "round_robin".to_owned(),
        task,
        criteria: Criteria {
            agents: vec![agent],
            ..Criteria::default()
        },
        deadline_ms: deadline_ms.min(concord_domain::aggregates::task::TASK_MS_MAX),
        answer_ms: None,
        priority: Priority::Normal,
        quorum: None,
        tolerance: 0.0,
        majority: Majority::default(),
        bids_ms: None,
        weights: BidWeights::default(),
        policy: serde_json::Value::Null,
    }
}

impl<P: Ports> Shared<P> {
    async fn rerun(&self, call: Call) -> Result<Bytes, Fault> {
        let RerunAsked { case_id } = from_json(&call.body, "")?;
        let id = case_id.token();
        let case = self.cases.load(&id).await;
        let case = case.map_err(|error| unread(&error))?.state;
        let opened = self.opening(&case_id, &case)?;
        let by = match &call.caller {
            None => AgentId::fixed(OPERATOR),
            Some(caller) => {
                let holds = |role| caller.authority.holds(role);
                if opened.opened_by != caller.name
                    && !holds(Role::Operator)
                    && !holds(Role::Reviewer)
                {
                    return Err(Fault::new(
                        ErrorCode::Unauthorized,
                        "",
                        format!("{} has not opened this case.", caller.name),
                        "Ask whoever opened it, a reviewer or an operator.",
                    ));
                }
                caller.name.clone()
            }
        };
        let known = self.analyses.load(&id).await;
        let graph = Arc::clone(&known.map_err(|error| unread(&error))?.state.graph);
        let asked = StartRerun {
            by,
            opened_by: opened.opened_by.clone(),
            standings: all_standings(&case, &graph),
            case_id: case_id.clone(),
        };
        let cause = MessageId::of_operator_request(&self.service.ports.unique_id());
        let context = self.service.of_message(cause);
        let input = ImpactInput::Start(Box::new(asked));
        let outcome = self.analyses.step(&id, &context, &input, None).await;
        let outcome = outcome.map_err(|error| unread(&error))?;
        self.service.count_step::<ImpactMachine>(&outcome);
        if let Outcome::Rejected(fault) = outcome {
            return Err(fault);
        }
        let known = self.analyses.load(&id).await;
        let known = known.map_err(|error| unread(&error))?.state;
        let run = &known.run;
        let plan = run.as_ref().map(|run| &run.plan);
        let number = run.as_ref().map(|run| run.number);
        answer(&json!({ "case_id": case_id, "run": number, "plan": plan }))
    }

    /// Opens the tasks that an event of a run asks for.
    pub(crate) async fn follow_run(
        &self,
        record: &StoredEvent<ImpactEvent>,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        let (case_id, run, next) = match &record.event {
            ImpactEvent::RerunStarted(started) => (&started.case_id, started.run, &started.next),
            ImpactEvent::RerunStepEnded(ended) => (&ended.case_id, ended.run, &ended.next),
            ImpactEvent::Published(_) => return Ok(()),
            ImpactEvent::Assessed(assessed) => {
                return self.follow_report(record, assessed, tasks).await;
            }
            ImpactEvent::Estimated(estimated) => {
                return self.follow_report(record, &estimated.assessed, tasks).await;
            }
        };
        if next.end.is_some() {
            self.record_figures(record, case_id, run).await?;
            self.run_by_itself(record, case_id).await?;
        }
        for asked in &next.ask {
            let cause = MessageId::derived(&format!("{}/{}", record.meta.event_id, asked.step));
            let id = task_id(&format!("{case_id}/{run}/{}", asked.step))?;
            let terms = terms(case_id, run, id.clone(), asked);
            if let Some(fault) = tasks.open_own(&id, cause.clone(), terms).await? {
                let step = StepOfRun {
                    case_id: case_id.clone(),
                    run,
                    step: asked.step,
                };
                self.end_step(step, cause, Err(fault.message)).await?;
            }
        }
        Ok(())
    }

    /// Gives the case the figures that a run has come to, and those of earlier runs, of which it may hear later.
    async fn record_figures(
        &self,
        record: &StoredEvent<ImpactEvent>,
        case_id: &CaseId,
        run: u32,
    ) -> Result<(), HandleError> {
        let id = case_id.token();
        let analyses = self.analyses_at(&id, record.sequence).await?;
        let figures = (*analyses.figures).clone();
        let input = CaseInput::Figures { run, figures };
        let context = self.service.of_event(record.meta.event_id.clone());
        let outcome = self.cases.step(&id, &context, &input, None).await?;
        self.service.count_step::<CaseMachine>(&outcome);
        Ok(())
    }

    /// Moves a run on whose task has ended.
    pub(crate) async fn heard_of_task(
        &self,
        record: &StoredEvent<TaskEvent>,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        let id = &record.meta.id;
        if !id.as_str().starts_with(TASK_PREFIX) {
            return Ok(());
        }
        let Some(end) = record.event.end() else {
            return Ok(());
        };
        if end.opened_by != Service::Coordinator.agent_id() {
            return Ok(());
        }
        let result = match &end.outcome {
            TaskOutcome::Completed { result, .. } => Ok(result.clone()),
            TaskOutcome::Failed { why, .. } => Err(why.clone()),
            TaskOutcome::Cancelled { by, why } => Err(format!("{by} has cancelled it: {why}")),
        };
        let Some(input) = tasks.input_of(id).await? else {
            return Ok(());
        };
        let cause = record.meta.event_id.clone();
        if let Ok(step) = StepOfRun::deserialize(&input) {
            return self.end_step(step, cause, result).await;
        }
        match QuestionOfReport::deserialize(&input) {
            Ok(question) => self.end_estimate(question, cause, result).await,
            Err(_) => Ok(()),
        }
    }

    async fn end_step(
        &self,
        step: StepOfRun,
        cause: MessageId,
        result: Result<Value, String>,
    ) -> Result<(), HandleError> {
        let id = step.case_id.token();
        let graph = Arc::clone(&self.analyses.load(&id).await?.state.graph);
        let case = self.cases.load(&id).await?.state;
        let ended = StepResult {
            run: step.run,
            step: step.step,
            result,
            standings: all_standings(&case, &graph),
        };
        let input = ImpactInput::StepEnded(Box::new(ended));
        let context = self.service.of_event(cause);
        let outcome = self.analyses.step(&id, &context, &input, None).await?;
        self.service.count_step::<ImpactMachine>(&outcome);
        Ok(())
    }
}
