//! Estimates of agents, and runs that begin by themselves: what follows from a report.

use concord_domain::aggregates::impact::{
    EstimateResult, ImpactInput, ImpactMachine, StartRerun, all_standings,
};
use concord_events::{AskedEstimate, ImpactAssessed, ImpactEvent, StoredEvent};
use concord_runtime::delivery::HandleError;
use concord_runtime::{Outcome, Ports};
use concord_wire::payload::Task;
use concord_wire::policy::Reruns;
use concord_wire::subject::Service;
use concord_wire::{CaseId, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::reruns::{task_id, task_of_one};
use crate::shared::Shared;
use crate::tasks::Tasks;

/// The kind of a task by which an agent is asked.
const TASK_TYPE: &str = "estimate_change";

/// Which question of a report a task is.
#[derive(Deserialize)]
pub(crate) struct QuestionOfReport {
    case_id: CaseId,
    estimate: u32,
}

impl<P: Ports> Shared<P> {
    /// Asks the agents that a report needs an estimate of, and has done again what must be, where the policy of the case says so.
    pub(crate) async fn follow_report(
        &self,
        record: &StoredEvent<ImpactEvent>,
        assessed: &ImpactAssessed,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        for asked in &assessed.ask {
            self.ask_estimate(record, assessed, asked, tasks).await?;
        }
        let is_complete = match &record.event {
            ImpactEvent::Estimated(estimated) => estimated.is_complete,
            _ => assessed.ask.is_empty(),
        };
        if is_complete {
            self.run_by_itself(record, &assessed.case_id).await?;
        }
        Ok(())
    }

    async fn ask_estimate(
        &self,
        record: &StoredEvent<ImpactEvent>,
        assessed: &ImpactAssessed,
        asked: &AskedEstimate,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        let case_id = &assessed.case_id;
        let number = asked.estimate;
        let of_case = case_id.token();
        let then = self.analyses_at(&of_case, record.sequence).await?;
        let graph = &then.graph;
        let analysis = graph.get(&asked.analysis_id);
        let figure = analysis.and_then(|one| one.published.figures.get(&asked.metric));
        let id = task_id(&format!("{case_id}/estimate/{number}"))?;
        let task = Task {
            kind: TASK_TYPE.to_owned(),
            title: format!("What becomes of {} of {}?", asked.metric, asked.analysis_id),
            input: json!({
                "case_id": case_id, "estimate": number, "analysis_id": asked.analysis_id, "metric": asked.metric,
                "figure": figure, "uses": asked.uses, "changed": assessed.changed,
            }),
        };
        let terms = task_of_one(id.clone(), task, asked.agent_id.clone(), asked.within_ms);
        let cause = MessageId::derived(&format!("{}/estimate/{number}", record.meta.event_id));
        if let Some(fault) = tasks.open_own(&id, cause.clone(), terms).await? {
            let question = QuestionOfReport {
                case_id: case_id.clone(),
                estimate: number,
            };
            self.end_estimate(question, cause, Err(fault.message))
                .await?;
        }
        Ok(())
    }

    /// Records what an agent has said, or why it has said nothing.
    pub(crate) async fn end_estimate(
        &self,
        question: QuestionOfReport,
        cause: MessageId,
        result: Result<Value, String>,
    ) -> Result<(), HandleError> {
        let input = ImpactInput::Estimated(EstimateResult {
            estimate: question.estimate,
            result,
        });
        let context = self.service.of_event(cause);
        let id = question.case_id.token();
        let outcome = self.analyses.step(&id, &context, &input, None).await?;
        self.service.count_step::<ImpactMachine>(&outcome);
        Ok(())
    }

    /// Begins a run if the policy of the case has runs begin by themselves and something has changed since the last one began.
    pub(crate) async fn run_by_itself(
        &self,
        record: &StoredEvent<ImpactEvent>,
        case_id: &CaseId,
    ) -> Result<(), HandleError> {
        let id = case_id.token();
        let case = self.cases.load(&id).await?.state;
        let Some(opened) = &case.opened else {
            return Ok(());
        };
        if opened.policy.impact.reruns != Reruns::Automatic {
            return Ok(());
        }
        let known = self.analyses.load(&id).await?.state;
        if !known.changed_since || known.is_under_way() {
            // At its end the run looks again.
            return Ok(());
        }
        let asked = StartRerun {
            by: Service::Coordinator.agent_id(),
            opened_by: opened.opened_by.clone(),
            standings: all_standings(&case, &known.graph),
            case_id: case_id.clone(),
        };
        let context = self.service.of_event(record.meta.event_id.clone());
        let input = ImpactInput::Start(Box::new(asked));
        let outcome = self.analyses.step(&id, &context, &input, None).await?;
        self.service.count_step::<ImpactMachine>(&outcome);
        if let Outcome::Rejected(fault) = outcome {
            tracing::info!(%case_id, %fault, "Nothing is done again by itself.");
        }
        Ok(())
    }
}
