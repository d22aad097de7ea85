//! What is shared: boards, commitments, analyses, memory and alerts. Who is in the case is asked before each message; a commitment ends when its
//! lease passes, its holder is gone, its task has ended, or its case is over.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::alert::{AlertInput, AlertMachine};
use concord_domain::aggregates::board::BoardMachine;
use concord_domain::aggregates::case::{CaseMachine, CaseState, Sharing, check_member};
use concord_domain::aggregates::commitment::{
    CommitmentInput, CommitmentMachine, ReceivedCommitment,
};
use concord_domain::aggregates::impact::ImpactMachine;
use concord_domain::aggregates::memory::{MemoryInput, MemoryMachine};
use concord_domain::aggregates::synthesis::SynthesisMachine;
use concord_domain::aggregates::watch::WatchMachine;
use concord_domain::{Context, Machine};
use concord_events::{AgentEvent, CaseEvent, DeadlineElapsed, EventMeta, StoredEvent, TaskEvent};
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Ack, Delivery, HandleError};
use concord_runtime::event_store::step;
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory, People, Ports};
use concord_wire::payload::{AgentStatus, CommitmentAct, TASK_RESOURCE};
use concord_wire::{AgentId, CaseId, Envelope, ErrorCode, Fault, Token};

use crate::holdings::Holdings;
use crate::people::Names;
use crate::route::shared::{SharedBounds, SharedInput};
use crate::tasks::Tasks;
use crate::watch::Flagging;

/// Boards, commitments, analyses and memory, and what is needed to say who may change them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared<P> {
    pub(crate) service: ServiceContext<P>,
    pub(crate) cases: Arc<Aggregates<CaseMachine, P>>,
    pub(crate) people: People<P>,
    pub(crate) agents: Arc<Aggregates<AgentMachine, P>>,
    pub(crate) boards: Arc<Aggregates<BoardMachine, P>>,
    pub(crate) commitments: Arc<Aggregates<CommitmentMachine, P>>,
    pub(crate) analyses: Arc<Aggregates<ImpactMachine, P>>,
    pub(crate) memories: Arc<Aggregates<MemoryMachine, P>>,
    pub(crate) syntheses: Arc<Aggregates<SynthesisMachine, P>>,
    pub(crate) alerts: Arc<Aggregates<AlertMachine, P>>,
    pub(crate) watch: Arc<Aggregates<WatchMachine, P>>,
    pub(crate) directory: Arc<Directory>,
    holdings: Arc<Holdings>,
    pub(crate) flagging: Arc<Flagging>,
    pub(crate) bounds: SharedBounds,
}

impl<P: Ports> Shared<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        cases: &Arc<Aggregates<CaseMachine, P>>,
        names: &Names<P>,
        (directory, holdings): (&Arc<Directory>, &Arc<Holdings>),
        bounds: SharedBounds,
    ) -> Self {
        let (ports, cache) = (&service.ports, &service.cache);
        Self {
            service: service.clone(),
            cases: Arc::clone(cases),
            people: names.people.clone(),
            agents: Arc::clone(&names.agents),
            boards: Arc::clone(&names.boards),
            commitments: Arc::clone(&names.commitments),
            analyses: Arc::new(Aggregates::new(ports.clone(), cache)),
            memories: Arc::new(Aggregates::new(ports.clone(), cache)),
            syntheses: Arc::new(Aggregates::new(ports.clone(), cache)),
            alerts: Arc::new(Aggregates::new(ports.clone(), cache)),
            watch: Arc::new(Aggregates::new(ports.clone(), cache)),
            directory: Arc::clone(directory),
            holdings: Arc::clone(holdings),
            flagging: Arc::default(),
            bounds,
        }
    }

    /// Steps for a message about what is shared.
    pub(crate) async fn take(
        &self,
        input: SharedInput,
        envelope: Envelope,
        delivery: &Delivery,
    ) -> Result<Ack, HandleError> {
        let service = &self.service;
        match input {
            SharedInput::Board(case_id, input) => {
                self.check_writer(&case_id, &envelope.from_agent).await?;
                let (boards, id) = (&self.boards, case_id.token());
                handlers::step_of_message(service, boards, id, envelope, &input, delivery).await
            }
            SharedInput::Commitment(id, input) => {
                if let CommitmentInput::Said(received) = &input {
                    self.check_holder(received).await?;
                }
                let commitments = &self.commitments;
                handlers::step_of_message(service, commitments, id, envelope, &input, delivery)
                    .await
            }
            SharedInput::Analysis(received) => self.publish(*received, envelope, delivery).await,
            SharedInput::Memory(mut input) => {
                let MemoryInput::Put(received) = &mut input;
                received.written_in = self.check_rememberer(received).await?;
                received.watched = self.watched(received).await?;
                delivery.spend(MemoryMachine::fan_out_bytes(&input))?;
                let (memories, id) = (&self.memories, envelope.from_agent.token());
                handlers::step_of_message(service, memories, id, envelope, &input, delivery).await
            }
            SharedInput::Alert(id, mut input) => {
                let from = &envelope.from_agent;
                match &mut input {
                    AlertInput::Raise(received) => {
                        received.sender = self.people.authority(from).await?;
                        received.registered = self.directory.names();
                        received.terms = self.regime_terms().await?;
                    }
                    AlertInput::Report(received) => {
                        received.sender = self.people.authority(from).await?;
                    }
                    AlertInput::Fire(_) | AlertInput::Elapsed(_) => {}
                }
                let alerts = &self.alerts;
                handlers::step_of_message(service, alerts, id, envelope, &input, delivery).await
            }
        }
    }

    pub(crate) async fn check_writer(
        &self,
        case_id: &CaseId,
        who: &AgentId,
    ) -> Result<Arc<CaseState>, HandleError> {
        let case = self.cases.load(&case_id.token()).await?.state;
        let authority = self.people.authority(who).await?;
        check_member(&case, who, &authority, Sharing::Write)?;
        Ok(case)
    }

    /// Who commits is in the case or, outside cases, on the register; and is there. Whoever has a commitment may give it back.
    async fn check_holder(&self, received: &ReceivedCommitment) -> Result<(), HandleError> {
        let who = &received.heard.agent_id;
        if let Some(case_id) = &received.case_id {
            self.check_writer(case_id, who).await?;
        }
        if received.said.act == CommitmentAct::Release {
            return Ok(());
        }
        let agent = self.agents.load(&who.token()).await?.state;
        let is_registered = agent.card.is_some();
        if is_registered && agent.status == AgentStatus::Unavailable {
            return Err(Fault::new(
                ErrorCode::AgentUnavailable,
                "/from_agent",
                format!("{who} is unavailable: {}", agent.why),
                "Say that you are available, or beat, before you commit to something.",
            )
            .into());
        }
        if received.case_id.is_some() {
            return Ok(());
        }
        if !is_registered {
            return Err(Fault::new(
                ErrorCode::Unauthorized,
                "/from_agent",
                format!("{who} is not on the register."),
                "Register with register_agent, or commit to something within your case.",
            )
            .into());
        }
        Ok(self.check_number(received)?)
    }

    /// Outside cases each resource is an aggregate of its own, so what an agent has is counted as far as this replica knows.
    fn check_number(&self, received: &ReceivedCommitment) -> Result<(), Fault> {
        let ReceivedCommitment { heard, said, .. } = received;
        let held = self.holdings.outside_cases(&heard.agent_id);
        if said.act != CommitmentAct::Commit
            || held.contains(&said.resource)
            || held.len() < self.bounds.leases.per_agent as usize
        {
            return Ok(());
        }
        Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/payload/resource",
            format!(
                "{} has committed to {} resources outside cases, and can to no more.",
                heard.agent_id,
                held.len()
            ),
            "Release one first.",
        ))
    }

    /// A lease has passed.
    pub(crate) async fn elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let context = self
            .service
            .of_event(EventMeta::decode(&delivery.payload)?.event_id);
        let (id, input) = (elapsed.id.clone(), CommitmentInput::Elapsed(elapsed));
        let trace = delivery.trace.clone();
        let (service, commitments) = (&self.service, &self.commitments);
        handlers::step(service, commitments, id, context, &input, trace).await
    }

    /// Ends what an agent holds that is gone. An event that comes late ends nothing of an agent that is back.
    pub(crate) async fn heard_of_agent(
        &self,
        record: &StoredEvent<AgentEvent>,
    ) -> Result<(), HandleError> {
        let agent = match &record.event {
            AgentEvent::Registered(_) | AgentEvent::Answered(_) | AgentEvent::Retried(_) => {
                return Ok(());
            }
            AgentEvent::Silent(silent) => &silent.agent_id,
            AgentEvent::Deregistered(left) => &left.agent_id,
            AgentEvent::StatusChanged(changed) => &changed.agent_id,
        };
        let held = self.holdings.of_agent(agent);
        if held.is_empty() {
            return Ok(());
        }
        let state = self.agents.load(&agent.token()).await?.state;
        if state.card.is_some() && state.status != AgentStatus::Unavailable {
            return Ok(());
        }
        let context = self.service.of_event(record.meta.event_id.clone());
        for id in held {
            let gone = CommitmentInput::Gone(agent.clone());
            self.end(&id, &context, &gone).await?;
        }
        Ok(())
    }

    /// Ends the commitments to a task that has ended, of those who have had it: anybody may open a task with an id that others use for
    /// something else.
    pub(crate) async fn end_commitments(
        &self,
        record: &StoredEvent<TaskEvent>,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        let resource = format!("{TASK_RESOURCE}{}", record.meta.id);
        let held = match record.event.end() {
            Some(_) => self.holdings.of_resource(&resource),
            None => Vec::new(),
        };
        for (agent, id) in held {
            if !tasks.has_had(&agent, &record.meta.id).await? {
                continue;
            }
            let context = self.service.of_event(record.meta.event_id.clone());
            let done = CommitmentInput::Done(agent, resource.clone());
            self.end(&id, &context, &done).await?;
        }
        Ok(())
    }

    /// Ends the commitments of a case whose end this event may be.
    pub(crate) async fn heard_of_case(
        &self,
        record: &StoredEvent<CaseEvent>,
    ) -> Result<(), HandleError> {
        let id = &record.meta.id;
        if !self.holdings.has(id) || !self.cases.load(id).await?.state.is_over() {
            return Ok(());
        }
        let context = self.service.of_event(record.meta.event_id.clone());
        self.end(id, &context, &CommitmentInput::CaseOver).await?;
        Ok(())
    }

    async fn end(
        &self,
        id: &Token,
        context: &Context,
        input: &CommitmentInput,
    ) -> Result<(), step::Error> {
        let outcome = self.commitments.step(id, context, input, None).await?;
        self.service.count_step::<CommitmentMachine>(&outcome);
        Ok(())
    }
}
