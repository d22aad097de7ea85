//! Opening and cancelling tasks by request and reply.

use bytes::Bytes;
use concord_domain::Machine;
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::task::{OpenedTask, TaskInput, TaskMachine};
use concord_runtime::delivery::HandleError;
use concord_runtime::service::api::{self, Call, Verb, answer};
use concord_runtime::service::operator_api;
use concord_runtime::{Outcome, Ports};
use concord_wire::envelope::from_json;
use concord_wire::payload::{CancelTask, OpenTask};
use concord_wire::subject::OPERATOR;
use concord_wire::subject::Service;
use concord_wire::{AgentId, ErrorCode, Fault, MessageId, Token};
use serde_json::{Value, json};

use super::Tasks;
use crate::route::task::check_task_id;

/// Answers `open_task`: the parameters of the request of the same name; the answer is `{"task_id": ...}`. The same parameters with
/// a `task_id` again get the same answer. Who asks under no name is the installation's own operator.
pub(crate) fn open_verb<P: Ports>(tasks: &Tasks<P>) -> Verb {
    api::verb(tasks.clone(), |tasks, call| async move {
        tasks.open(call).await
    })
}

/// Answers `cancel_task`, for whoever opened the task and for operators.
pub(crate) fn cancel_verb<P: Ports>(tasks: &Tasks<P>) -> Verb {
    api::verb(tasks.clone(), |tasks, call| async move {
        tasks.cancel(call).await
    })
}

fn caller(call: &Call) -> (AgentId, Authority) {
    match &call.caller {
        None => (AgentId::fixed(OPERATOR), Authority::of_installation()),
        Some(caller) => (caller.name.clone(), caller.authority.clone()),
    }
}

impl<P: Ports> Tasks<P> {
    /// Opens a task of the coordinator's own; the reason where it cannot be opened.
    pub(crate) async fn open_own(
        &self,
        id: &Token,
        cause: MessageId,
        terms: OpenTask,
    ) -> Result<Option<Fault>, HandleError> {
        let context = self.service.of_event(cause.clone());
        let opened_by = Service::Coordinator.agent_id();
        let asked = OpenedTask {
            opened_by: opened_by.clone(),
            request_id: cause,
            terms,
            candidates: Vec::new(),
            sender: Authority::default(),
        };
        let asked = self.with_candidates(id, &context, asked, "").await?;
        let input = TaskInput::Open(Box::new(asked));
        let outcome = self.tasks.step(id, &context, &input, None).await?;
        self.service.count_step::<TaskMachine>(&outcome);
        Ok(match outcome {
            Outcome::Rejected(fault) => Some(fault),
            Outcome::Appended { .. } | Outcome::Ignored(_) => None,
        })
    }

    /// What a task is about; none for one that was not opened.
    pub(crate) async fn input_of(&self, id: &Token) -> Result<Option<Value>, HandleError> {
        let task = self.tasks.load(id).await?.state;
        let opened = task.opened.as_ref();
        Ok(opened.map(|opened| opened.terms.task.input.clone()))
    }

    /// How long an agent has had a task, up to the event at this sequence: from getting it to the end of its time, in milliseconds.
    pub(crate) async fn given_ms(
        &self,
        id: &Token,
        sequence: u64,
        agent: &AgentId,
    ) -> Result<u64, HandleError> {
        let task = self.tasks.load_up_to(id, sequence).await?.state;
        Ok(task.parts.get(agent).map_or(0, |part| part.given_ms))
    }

    async fn open(&self, call: Call) -> Result<Bytes, Fault> {
        let (opened_by, sender) = caller(&call);
        let terms: OpenTask = from_json(&call.body, "")?;
        check_task_id(terms.task_id.as_ref(), "/task_id")?;
        let made = || Token::derived(&self.service.ports.unique_id());
        let id = terms.task_id.clone().unwrap_or_else(made);
        let request_id = MessageId::derived(&format!("api/task/{id}"));
        let asked = OpenedTask {
            opened_by,
            request_id: request_id.clone(),
            terms,
            candidates: Vec::new(),
            sender,
        };
        let context = self.service.of_message(request_id);
        let asked = self.with_candidates(&id, &context, asked, "").await;
        let input = TaskInput::Open(Box::new(asked.map_err(operator_api::unprepared)?));
        let spent = call.spend(TaskMachine::fan_out_bytes(&input), self.service.ports.now());
        let answered = match spent {
            Ok(()) => self.answered(&id, &context, &input).await,
            Err(fault) => Err(fault),
        };
        // What could not be done is asked for again, and needs the place: it could not be taken anew for the same task.
        let could_not = |fault: &Fault| fault.code == ErrorCode::InternalError;
        if let TaskInput::Open(asked) = &input
            && !answered.as_ref().is_err_and(could_not)
        {
            let settled = self.settle(&id, asked).await;
            settled.map_err(operator_api::unprepared)?;
        }
        answered
    }

    async fn cancel(&self, call: Call) -> Result<Bytes, Fault> {
        let (by, sender) = caller(&call);
        let CancelTask { task_id, why } = from_json(&call.body, "")?;
        let cause = MessageId::of_operator_request(&self.service.ports.unique_id());
        let input = TaskInput::Cancel {
            by,
            sender: Box::new(sender),
            request_id: None,
            why,
        };
        let context = self.service.of_message(cause);
        self.answered(&task_id, &context, &input).await
    }

    async fn answered(
        &self,
        id: &Token,
        context: &concord_domain::Context,
        input: &TaskInput,
    ) -> Result<Bytes, Fault> {
        let outcome = self.tasks.step(id, context, input, None).await;
        let outcome = outcome.map_err(|error| Fault {
            advice: "Look whether it was done, and ask again with the same task_id if not.".into(),
            ..operator_api::undone(&error)
        })?;
        self.service.count_step::<TaskMachine>(&outcome);
        match outcome {
            Outcome::Rejected(fault) => Err(fault),
            Outcome::Appended { .. } | Outcome::Ignored(_) => answer(&json!({ "task_id": id })),
        }
    }
}
