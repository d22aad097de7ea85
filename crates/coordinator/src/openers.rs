//! The quotas of openers: a place is asked for before a case is opened or a challenge is recorded, and given back when the case
//! has ended for good.

use std::sync::Arc;

use concord_domain::aggregates::case::{
    CaseInput, CaseMachine, CaseState, OpenRequest, ReceivedChallenge,
};
use concord_domain::aggregates::opener::{OpenerInput, OpenerMachine, OpenerState};
use concord_domain::aggregates::task::{OpenedTask, TaskMachine, TaskState};
use concord_domain::{Context, Decision, Machine};
use concord_events::{
    Admitted, CaseEvent, ChallengeAdmitted, EventMeta, OpenerEvent, QuotaReached, Quotas,
    StoredEvent, TaskAdmitted,
};
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::step;
use concord_runtime::service::owned::OwnedAggregates;
use concord_runtime::service::{Binder, ServiceContext};
use concord_runtime::{Aggregates, Ports};
use concord_wire::payload::Role;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Fault, MessageId, Token};

/// How old a place is before it is looked whether there is a case, in milliseconds. Between the two are a few steps.
const PLACE_UNUSED_MS: u64 = 60_000;

/// What is refused where a quota is used up.
#[derive(Debug, Clone, Copy)]
enum Refused<'a> {
    /// A case, or a challenge in it.
    Case(&'a CaseId),
    Task(&'a Token),
}

/// The openers and the quotas that hold them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Openers<P> {
    pub(crate) service: ServiceContext<P>,
    pub(crate) cases: Arc<Aggregates<CaseMachine, P>>,
    tasks: Arc<Aggregates<TaskMachine, P>>,
    pub(crate) held: Arc<OwnedAggregates<OpenerMachine, P>>,
    pub(crate) quotas: Quotas,
}

impl<P: Ports> Openers<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        cases: &Arc<Aggregates<CaseMachine, P>>,
        quotas: Quotas,
        binder: &mut impl Binder,
    ) -> Self {
        Self {
            service: service.clone(),
            cases: Arc::clone(cases),
            tasks: Arc::new(Aggregates::new(service.ports.clone(), &service.cache)),
            held: Arc::new(OwnedAggregates::new(service, binder)),
            quotas,
        }
    }

    /// Whether there is a case, as some copy of the stream knows it.
    pub(crate) async fn is_open(&self, id: &Token) -> Result<bool, step::Error> {
        Ok(self.cases.peek(id).await?.state.opened.is_some())
    }

    /// Asks for a place for the case that is to be opened; refused where a quota is used up. The same request again finds its place.
    /// Nothing is opened where there is a case: it may have ended long ago. One that was not seen is found when the place is settled.
    pub(crate) async fn admit(
        &self,
        id: &Token,
        asked: &OpenRequest,
        is_open: bool,
    ) -> Result<(), HandleError> {
        let Quotas {
            open_cases, gates, ..
        } = self.quotas;
        if is_open || (open_cases, gates) == (0, 0) || asked.sender.holds(Role::Operator) {
            return Ok(());
        }
        // What is not valid takes no place: the case refuses it.
        let input = CaseInput::Open(Box::new(asked.clone()));
        let context = self.service.of_message(asked.request_id.clone());
        let opening = CaseMachine::decide(&CaseState::default(), &context, &input);
        let (Decision::Append(_), Ok(case_id)) = (opening, CaseId::new(id.as_str())) else {
            return Ok(());
        };
        let admitted = Admitted {
            opener: asked.opened_by.clone(),
            case_id: case_id.clone(),
            gates: u32::try_from(asked.request.gates.len()).unwrap_or(u32::MAX),
            quotas: self.quotas,
        };
        let (input, place) = (OpenerInput::Admit(admitted), self.of_place(&context));
        self.ask(&asked.opened_by, &place, &input, Refused::Case(&case_id))
            .await
    }

    /// Asks for a place for a challenge in a case, of whoever opened the case.
    pub(crate) async fn admit_challenge(
        &self,
        id: &Token,
        received: &ReceivedChallenge,
    ) -> Result<(), HandleError> {
        if self.quotas.challenges == 0 {
            return Ok(());
        }
        let case = self.cases.load(id).await?.state;
        let Some((opener, case_id)) = place_of(&case) else {
            return Ok(());
        };
        let message_id = received.heard.message_id.clone();
        let context = self.service.of_message(message_id.clone());
        let input = CaseInput::Challenge(Box::new(received.clone()));
        // What is refused takes no place. It is refused here, because the case may have changed when it decides itself.
        match CaseMachine::decide(&case, &context, &input) {
            Decision::Append(_) => {}
            Decision::Reject(fault) => return Err(fault.into()),
            Decision::Ignore(_) => return Ok(()),
        }
        let asked = ChallengeAdmitted {
            case_id: case_id.clone(),
            message_id,
            quota: self.quotas.challenges,
        };
        let input = OpenerInput::Challenge(asked);
        self.ask(opener, &context, &input, Refused::Case(case_id))
            .await
    }

    /// Asks for a place for a task that is to be opened; refused where the quota is used up. The same request again finds its place.
    /// Operators are not held by it, and neither is the coordinator itself.
    pub(crate) async fn admit_task(
        &self,
        id: &Token,
        context: &Context,
        asked: &OpenedTask,
    ) -> Result<(), HandleError> {
        let (opener, quota) = (&asked.opened_by, self.quotas.open_tasks);
        let is_service = Service::parse(opener.as_str()).is_ok();
        if quota == 0 || is_service || asked.sender.holds(Role::Operator) {
            return Ok(());
        }
        let admitted = TaskAdmitted {
            opener: opener.clone(),
            task_id: id.clone(),
            quota,
        };
        let (input, place) = (OpenerInput::AdmitTask(admitted), self.of_place(context));
        self.ask(opener, &place, &input, Refused::Task(id)).await
    }

    /// Gives back the place of a task.
    pub(crate) async fn release_task(
        &self,
        id: &Token,
        opener: &AgentId,
        context: &Context,
    ) -> Result<(), HandleError> {
        let release = OpenerInput::ReleaseTask(id.clone());
        self.step(opener, context, &release).await?;
        Ok(())
    }

    /// Gives back the place of a task that was not opened after all.
    pub(crate) async fn settle_task(
        &self,
        id: &Token,
        opener: &AgentId,
    ) -> Result<(), HandleError> {
        let context = self.ordered(&format!("settled/task/{id}"));
        self.release_task(id, opener, &context).await
    }

    /// Asks for a place. Where a quota is used up for the first time in an hour, places that nobody needs are given back first, and
    /// what is refused then is recorded, so that people are told.
    async fn ask(
        &self,
        opener: &AgentId,
        context: &Context,
        input: &OpenerInput,
        refused: Refused<'_>,
    ) -> Result<(), HandleError> {
        let Some(fault) = self.step(opener, context, input).await? else {
            return Ok(());
        };
        let held = self.held.to_read().load(&opener.token()).await?.state;
        let Some((quota, limit)) = held.in_the_way_of(input) else {
            return Err(fault.into());
        };
        if held.was_told(quota, context.now) {
            return Err(fault.into());
        }
        self.sweep(opener, &held).await?;
        let Some(fault) = self.step(opener, context, input).await? else {
            return Ok(());
        };
        let (case_id, task_id) = match refused {
            Refused::Case(case_id) => (Some(case_id.clone()), None),
            Refused::Task(task_id) => (None, Some(task_id.clone())),
        };
        let reached = QuotaReached {
            opener: opener.clone(),
            quota,
            limit,
            case_id,
            task_id,
        };
        // Not the message's id: a request that was refused may be sent again, and then leads to another event.
        let told = self.ordered(&format!("quota/{opener}/{quota}"));
        self.step(opener, &told, &OpenerInput::Tell(reached))
            .await?;
        Err(fault.into())
    }

    /// Gives back the places of cases that were not opened. There are hardly any: one is left where a process stops between the place
    /// and the case, and another has refused the same message meanwhile.
    async fn sweep(&self, opener: &AgentId, held: &OpenerState) -> Result<(), HandleError> {
        let now = self.service.ports.now();
        let places = held.cases.iter();
        let old = places.filter(|(_, place)| now.millis_since(place.since) >= PLACE_UNUSED_MS);
        for (case_id, _) in old {
            let case = self.cases.load(&case_id.token()).await?.state;
            if !is_needed(&case, opener) {
                let cause = self.ordered(&format!("swept/{case_id}"));
                let release = OpenerInput::Release(case_id.clone());
                self.step(opener, &cause, &release).await?;
            }
        }
        let old = held.tasks.iter();
        let old = old.filter(|(_, since)| now.millis_since(**since) >= PLACE_UNUSED_MS);
        for (task_id, _) in old {
            let task = self.tasks.load(task_id).await?.state;
            if !task_needs_place(&task, opener) {
                let cause = self.ordered(&format!("swept/task/{task_id}"));
                self.release_task(task_id, opener, &cause).await?;
            }
        }
        Ok(())
    }

    /// Gives back the place that was asked for, where it is not needed: somebody else was faster with the same id, an operator has no
    /// place, or another process has opened the case meanwhile and it has even ended.
    pub(crate) async fn settle(&self, id: &Token, opener: &AgentId) -> Result<(), HandleError> {
        // As the step has just left it, which came after the place: an end that is still to come is heard, and finds the place.
        let case = self.cases.load_up_to(id, 1).await?.state;
        let (false, Ok(case_id)) = (is_needed(&case, opener), CaseId::new(id.as_str())) else {
            return Ok(());
        };
        let context = self.ordered(&format!("settled/{id}"));
        let release = OpenerInput::Release(case_id);
        self.step(opener, &context, &release).await?;
        Ok(())
    }

    /// Gives back a place that was taken too late. One try of a message can be slow: it takes the place when another try has been
    /// refused already, because another message was faster with the case's id. Nobody but this handler would see it if the slow
    /// try then stopped. The place of a case that is not opened yet is left to the tries of its message.
    pub(crate) async fn heard_admission(
        &self,
        record: &StoredEvent<OpenerEvent>,
    ) -> Result<(), HandleError> {
        let OpenerEvent::Admitted(admitted) = &record.event else {
            return Ok(());
        };
        let case_id = admitted.case_id.token();
        // As it was after the place was taken: an end that is still to come is heard, and finds the place.
        let case = self
            .cases
            .load_up_to(&case_id, record.sequence + 1)
            .await?
            .state;
        if case.opened.is_some() && !is_needed(&case, &admitted.opener) {
            let context = self.service.of_event(record.meta.event_id.clone());
            let release = OpenerInput::Release(admitted.case_id.clone());
            self.step(&admitted.opener, &context, &release).await?;
        }
        Ok(())
    }

    /// Gives back the place of a case whose end this event may be.
    pub(crate) async fn heard(&self, record: &StoredEvent<CaseEvent>) -> Result<(), HandleError> {
        match &record.event {
            CaseEvent::Decided(_)
            | CaseEvent::DecisionChanged(_)
            | CaseEvent::GateReviewed(_)
            | CaseEvent::GatePassed(_)
            | CaseEvent::Cancelled(_) => {}
            _ => return Ok(()),
        }
        let EventMeta { id, event_id, .. } = &record.meta;
        // What comes after this event and ends the case is heard, too.
        let case = self.cases.load_up_to(id, record.sequence).await?.state;
        if let Some((opener, case_id)) = opener_of(&case)
            && case.is_over()
        {
            let context = self.service.of_event(event_id.clone());
            let release = OpenerInput::Release(case_id.clone());
            self.step(opener, &context, &release).await?;
        }
        Ok(())
    }

    /// The circumstances of taking a place because of a message. Another message may have it given back before this one is delivered again
    /// and takes it again, and one cause leads to one event of an aggregate.
    fn of_place(&self, message: &Context) -> Context {
        self.ordered(&format!("admitted/{}", message.cause))
    }

    /// The circumstances of a step that follows from no single message.
    fn ordered(&self, what: &str) -> Context {
        let now = self.service.ports.now();
        let cause = MessageId::derived(&format!("{what}/{now}"));
        self.service.of_message(cause)
    }

    /// One step of an opener: the fault, where it was refused.
    async fn step(
        &self,
        opener: &AgentId,
        context: &Context,
        input: &OpenerInput,
    ) -> Result<Option<Fault>, step::Error> {
        let stepped = self.held.step(&opener.token(), context, input).await?;
        Ok(stepped.fault)
    }
}

/// Who opened the case, unless it is of an earlier version, which had no quotas.
fn opener_of(case: &CaseState) -> Option<(&AgentId, &CaseId)> {
    let opened = case.opened.as_ref()?;
    opened.policy_version?;
    Some((&opened.opened_by, case.case_id.as_ref()?))
}

/// Who has a place for the case. Cases of operators have none.
fn place_of(case: &CaseState) -> Option<(&AgentId, &CaseId)> {
    let by_operator = case.opened.as_ref()?.by_operator;
    opener_of(case).filter(|_| !by_operator)
}

/// Whether the opener needs the place of the case.
fn is_needed(case: &CaseState, opener: &AgentId) -> bool {
    place_of(case).is_some_and(|(holder, _)| holder == opener) && !case.is_over()
}

/// Whether an opener needs the place of a task.
pub(crate) fn task_needs_place(task: &TaskState, opener: &AgentId) -> bool {
    let opened = task.opened.as_ref();
    task.ended.is_none() && opened.is_some_and(|opened| opened.opened_by == *opener)
}
