//! The cases of tasks that are given to a panel: opened with the task, its end when they are decided, cancelled with it.

use std::sync::Arc;

use concord_domain::aggregates::case::{CaseInput, CaseMachine, CaseState, OpenRequest};
use concord_domain::aggregates::task::strategy::{self, panel};
use concord_domain::aggregates::task::{OpenedTask, TaskInput};
use concord_domain::{Context, Decision, Machine};
use concord_events::{CaseEvent, EventMeta, StoredEvent, TaskEvent, TaskOutcome};
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::step;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Outcome, Ports, Trace};
use concord_wire::{CaseId, Fault, Token};

use super::Tasks;
use crate::people::Names;
use crate::route::task::{cancel_case, case_input};

/// The cases of tasks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Panels<P> {
    service: ServiceContext<P>,
    cases: Arc<Aggregates<CaseMachine, P>>,
    names: Names<P>,
}

/// Whether a strategy gives tasks to a case.
pub(super) fn opens_case(name: &str) -> bool {
    strategy::named(name).is_some_and(|one| one.opens_case())
}

/// Whether a case is that of the task with its id.
fn is_of_task(case: &CaseState, task_id: &Token) -> bool {
    let opened = case.opened.as_ref();
    opened.is_some_and(|opened| opened.request_id == panel::request_id(task_id))
}

impl<P: Ports> Panels<P> {
    pub(super) fn new(
        service: &ServiceContext<P>,
        cases: &Arc<Aggregates<CaseMachine, P>>,
        names: &Names<P>,
    ) -> Self {
        Self {
            service: service.clone(),
            cases: Arc::clone(cases),
            names: names.clone(),
        }
    }

    /// Refuses a task whose case would be refused, and takes the place of its opener's quota for it: whoever opens a task hears at once
    /// what is wrong. `parameters` is the JSON pointer of the parameters in the request.
    pub(super) async fn admit(
        &self,
        task_id: &Token,
        asked: &OpenedTask,
        parameters: &'static str,
    ) -> Result<(), HandleError> {
        if !opens_case(&asked.terms.strategy) || asked.candidates.is_empty() {
            return Ok(());
        }
        let pointer = if parameters.is_empty() {
            "/policy"
        } else {
            "/payload/parameters/policy"
        };
        if CaseId::new(task_id.as_str()).is_err() {
            return Err(Fault::invalid(
                format!("{parameters}/task_id"),
                format!("A case cannot have the id {task_id}, and that of a task has the task's."),
                "Use letters, digits, - and _, or leave task_id out and one is made.",
            )
            .into());
        }
        let request = panel::request(task_id, asked, pointer);
        let request = self.with_policies(request).await?;
        let context = self.service.of_message(request.request_id.clone());
        let known = self.cases.load(task_id).await?.state;
        if known.opened.is_some() && !is_of_task(&known, task_id) {
            return Err(Fault::invalid(
                format!("{parameters}/task_id"),
                format!("The case {task_id} exists already, and that of a task has the task's id."),
                format!(
                    "Choose another task_id, or leave it out and one is made; `concord case show {task_id}` shows this case."
                ),
            )
            .into());
        }
        let input = CaseInput::Open(Box::new(request.clone()));
        if let Decision::Reject(fault) = CaseMachine::decide(&known, &context, &input) {
            return Err(fault.into());
        }
        let request = OpenRequest {
            sender: asked.sender.clone(),
            ..request
        };
        let is_open = known.opened.is_some();
        self.names.openers.admit(task_id, &request, is_open).await
    }

    async fn with_policies(&self, request: OpenRequest) -> Result<OpenRequest, HandleError> {
        let known = Box::pin(self.names.policies.known(&request.request.policy)).await?;
        Ok(OpenRequest { known, ..request })
    }

    /// Opens or cancels the case of a task. The fault, where it is refused.
    async fn step(
        &self,
        task_id: &Token,
        context: &Context,
        input: CaseInput,
    ) -> Result<Option<Fault>, HandleError> {
        let input = match input {
            CaseInput::Open(request) => {
                CaseInput::Open(Box::new(self.with_policies(*request).await?))
            }
            other => other,
        };
        let trace = CaseId::new(task_id.as_str()).ok();
        let trace = trace.map(|case_id| Trace::of_case(&case_id));
        let stepped = self.cases.step(task_id, context, &input, trace.as_ref());
        let outcome = stepped.await?;
        self.service.count_step::<CaseMachine>(&outcome);
        Ok(match outcome {
            Outcome::Rejected(fault) => Some(fault),
            Outcome::Appended { .. } | Outcome::Ignored(_) => None,
        })
    }

    /// Whether a task has a case that is not decided.
    async fn is_undecided(&self, task_id: &Token) -> Result<bool, step::Error> {
        let case = self.cases.load(task_id).await?.state;
        Ok(is_of_task(&case, task_id) && case.decision.is_none() && !case.is_over())
    }
}

impl<P: Ports> Tasks<P> {
    /// Opens the case of a task that was opened, and cancels that of one that has ended without it.
    pub(super) async fn follow_panel(
        &self,
        record: &StoredEvent<TaskEvent>,
    ) -> Result<(), HandleError> {
        let Some(input) = case_input(record) else {
            return Ok(());
        };
        let EventMeta { id, event_id, .. } = &record.meta;
        let context = self.service.of_event(event_id.clone());
        let opener = match &input {
            CaseInput::Open(asked) => asked.opened_by.clone(),
            _ => {
                if self.panels.is_undecided(id).await? {
                    self.panels.step(id, &context, input).await?;
                }
                return Ok(());
            }
        };
        if self.tasks.load(id).await?.state.ended.is_some() {
            // Where it has ended before it got a case, there is no end of one that gives its place back.
            return self.openers.settle(id, &opener).await;
        }
        let refused = self.panels.step(id, &context, input).await?;
        if let (Some(fault), Ok(case_id)) = (refused, CaseId::new(id.as_str())) {
            let outcome = panel::refused(&fault);
            self.openers.settle(id, &opener).await?;
            return self.end_by_case(id, &context, case_id, outcome).await;
        }
        // It may have ended while its case was opened, and whoever heard of that found no case.
        let task = self.tasks.load(id).await?.state;
        if let (Some(opened), Some(ended_by)) = (&task.opened, &task.ended_by)
            && self.panels.is_undecided(id).await?
        {
            let context = self.service.of_event(ended_by.clone());
            let input = cancel_case(opened.opened_by.clone());
            self.panels.step(id, &context, input).await?;
        }
        Ok(())
    }

    /// Ends the task of a case that is decided or cancelled.
    pub(crate) async fn heard_of_case(
        &self,
        record: &StoredEvent<CaseEvent>,
    ) -> Result<(), HandleError> {
        let (CaseEvent::Decided(_) | CaseEvent::Cancelled(_)) = &record.event else {
            return Ok(());
        };
        let EventMeta { id, event_id, .. } = &record.meta;
        let case = self
            .panels
            .cases
            .load_up_to(id, record.sequence)
            .await?
            .state;
        let (Ok(case_id), true) = (CaseId::new(id.as_str()), is_of_task(&case, id)) else {
            return Ok(());
        };
        let Some(outcome) = panel::outcome(&case_id, &case) else {
            return Ok(());
        };
        let context = self.service.of_event(event_id.clone());
        self.end_by_case(id, &context, case_id, outcome).await
    }

    async fn end_by_case(
        &self,
        id: &Token,
        context: &Context,
        case_id: CaseId,
        outcome: TaskOutcome,
    ) -> Result<(), HandleError> {
        let outcome = Box::new(outcome);
        self.step_task(id, context, &TaskInput::CaseEnded { case_id, outcome })
            .await
    }
}
