//! Tasks: what is read before one is decided on, and what follows from its events: places on worklists.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::task::{OpenedTask, Said, TaskInput, TaskMachine, TaskState, Word};
use concord_domain::aggregates::worklist::{WorklistInput, WorklistMachine};
use concord_domain::{Context, Decision, Machine};
use concord_events::{
    AgentEvent, DeadlineElapsed, EventMeta, StoredEvent, TaskEvent, TaskStep, WorkTaken,
    WorklistEvent,
};
use concord_runtime::delivery::{Ack, Delivery, HandleError, handlers};
use concord_runtime::event_store::step;
use concord_runtime::service::owned::OwnedAggregates;
use concord_runtime::service::{Binder, ServiceContext};
use concord_runtime::{Aggregates, Directory, People, Ports};
use concord_wire::payload::AgentStatus;
use concord_wire::{AgentId, Envelope, Fault, MessageId, MessageType, Token};

use crate::openers::Openers;
use crate::people::Names;
use crate::route::task::{PARAMETERS, TaskMessage, from_message};
use panels::Panels;

mod api;
mod asked;
mod candidates;
mod capacity;
mod find;
mod panels;
mod places;

pub(crate) use api::{cancel_verb, open_verb};
pub(crate) use candidates::Candidates;
pub(crate) use find::verb as find_verb;

/// The tasks and the worklists of those who do them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tasks<P> {
    service: ServiceContext<P>,
    tasks: Arc<Aggregates<TaskMachine, P>>,
    worklists: Arc<OwnedAggregates<WorklistMachine, P>>,
    agents: Arc<Aggregates<AgentMachine, P>>,
    people: People<P>,
    directory: Arc<Directory>,
    candidates: Candidates<P>,
    panels: Panels<P>,
    openers: Openers<P>,
}

impl<P: Ports> Tasks<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        cases: &Arc<Aggregates<CaseMachine, P>>,
        names: &Names<P>,
        directory: &Arc<Directory>,
        binder: &mut impl Binder,
    ) -> Self {
        directory.keep_index();
        let worklists = Arc::new(OwnedAggregates::new(service, binder));
        Self {
            service: service.clone(),
            tasks: Arc::new(Aggregates::new(service.ports.clone(), &service.cache)),
            agents: Arc::clone(&names.agents),
            people: names.people.clone(),
            directory: Arc::clone(directory),
            candidates: Candidates::new(service, &worklists, directory, binder),
            panels: Panels::new(service, cases, names),
            openers: names.openers.clone(),
            worklists,
        }
    }

    /// Handles a message that is about a task; none when it is about something else.
    pub(crate) async fn take(
        &self,
        envelope: &Envelope,
        delivery: &Delivery,
    ) -> Result<Option<Ack>, HandleError> {
        let message = match envelope.message_type {
            MessageType::Response => self.read_response(envelope).await?,
            _ => from_message(envelope)?,
        };
        let (id, input) = match message {
            None => return Ok(None),
            Some(TaskMessage::Find(asked)) => {
                let found = find::answer_message(
                    &self.directory,
                    &asked,
                    envelope,
                    delivery,
                    &self.service,
                )?;
                let trace = delivery.trace.as_ref();
                self.service.ports.publish(&[found], trace).await?;
                return Ok(Some(Ack::Acknowledge));
            }
            Some(TaskMessage::Step(..))
                if envelope.message_type == MessageType::Error
                    && !self.has_asked(envelope).await? =>
            {
                return Ok(None);
            }
            Some(TaskMessage::Step(id, input)) => (id, input),
        };
        let context = self.service.of_message(envelope.message_id.clone());
        let input = self.prepare(&id, &context, input).await?;
        if let Err(fault) = delivery.spend(TaskMachine::fan_out_bytes(&input)) {
            if let TaskInput::Open(asked) = &input {
                self.settle(&id, asked).await?;
            }
            return Err(fault.into());
        }
        let envelope = envelope.clone();
        let (service, tasks) = (&self.service, &self.tasks);
        let done =
            handlers::step_of_message(service, tasks, id.clone(), envelope, &input, delivery).await;
        // A step that is tried again needs the place.
        if let (TaskInput::Open(asked), Ok(_) | Err(HandleError::Refused(_))) = (&input, &done) {
            self.settle(&id, asked).await?;
        }
        done.map(Some)
    }

    /// The input with what must be read elsewhere: who the sender is, who fits, how reliable a bidder is.
    async fn prepare(
        &self,
        id: &Token,
        context: &Context,
        input: TaskInput,
    ) -> Result<TaskInput, HandleError> {
        Ok(match input {
            TaskInput::Open(asked) => {
                let sender = self.people.authority(&asked.opened_by).await?;
                let asked = OpenedTask { sender, ..*asked };
                let asked = self.with_candidates(id, context, asked, PARAMETERS).await?;
                TaskInput::Open(Box::new(asked))
            }
            TaskInput::Cancel {
                by,
                request_id,
                why,
                ..
            } => {
                let sender = Box::new(self.people.authority(&by).await?);
                TaskInput::Cancel {
                    by,
                    sender,
                    request_id,
                    why,
                }
            }
            TaskInput::Say(said) => {
                let Said { by, asked, word } = *said;
                let word = match word {
                    Word::Bid(bid, _) => {
                        let known = self.worklists.to_read().load(&by.token()).await?;
                        Word::Bid(bid, known.state.reliability())
                    }
                    Word::HandOn(handoff, _) => {
                        let refusal = match &handoff.to {
                            Some(to) => self.why_gone(to).await?,
                            None => None,
                        };
                        Word::HandOn(handoff, refusal)
                    }
                    other => other,
                };
                TaskInput::Say(Box::new(Said { by, asked, word }))
            }
            TaskInput::Member {
                agent, joins: true, ..
            } if self.agents.load(&agent.token()).await?.state.card.is_none() => {
                return Err(Fault::invalid(
                    "/from_agent",
                    format!(
                        "{agent} is not registered, and only registered agents are given tasks."
                    ),
                    "Register with register_agent, and join then.",
                )
                .into());
            }
            other => other,
        })
    }

    async fn with_candidates(
        &self,
        id: &Token,
        context: &Context,
        asked: OpenedTask,
        parameters: &'static str,
    ) -> Result<OpenedTask, HandleError> {
        // What is open already is not looked for anew, and nobody loses a turn. The step decides.
        if self.tasks.peek(id).await?.state.opened.is_some() {
            return Ok(asked);
        }
        let asked = self.candidates.find(asked).await?;
        // What is not valid takes no place and no turn: the task refuses it.
        let input = TaskInput::Open(Box::new(asked.clone()));
        let opening = TaskMachine::decide(&TaskState::default(), context, &input);
        if !matches!(opening, Decision::Append(_)) {
            return Ok(asked);
        }
        self.openers.admit_task(id, context, &asked).await?;
        let of_case = Box::pin(self.panels.admit(id, &asked, parameters)).await;
        if let Err(HandleError::Refused(_)) = &of_case {
            // What is refused keeps no place.
            self.settle(id, &asked).await?;
        }
        of_case?;
        self.candidates.turn(id, context, asked).await
    }

    /// Why an agent cannot be given work, as the stream's leader knows it; none where it can.
    async fn why_gone(&self, agent: &AgentId) -> Result<Option<String>, step::Error> {
        let known = self.agents.load(&agent.token()).await?.state;
        Ok(match (&known.card, known.status) {
            (None, _) => Some(format!("{agent} is not registered.")),
            (Some(_), AgentStatus::Unavailable) => {
                Some(format!("{agent} is unavailable. {}", known.why))
            }
            (Some(_), AgentStatus::Available | AgentStatus::Busy) => None,
        })
    }

    /// Whether an agent was given a task.
    pub(crate) async fn has_had(&self, agent: &AgentId, id: &Token) -> Result<bool, step::Error> {
        let task = self.tasks.load(id).await?.state;
        Ok(task.parts.contains_key(agent))
    }

    /// A deadline of a task has passed.
    pub(crate) async fn elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let cause = EventMeta::decode(&delivery.payload)?.event_id;
        let (context, id) = (self.service.of_event(cause), elapsed.id.clone());
        let input = TaskInput::Elapsed(elapsed);
        let trace = delivery.trace.clone();
        handlers::step(&self.service, &self.tasks, id, context, &input, trace).await
    }

    /// Takes and gives back places as an event of a task says.
    pub(crate) async fn follow(&self, record: &StoredEvent<TaskEvent>) -> Result<(), HandleError> {
        Box::pin(self.follow_panel(record)).await?;
        self.free_place(record).await?;
        let Some(TaskStep { ask, release, .. }) = record.event.next() else {
            return Ok(());
        };
        let EventMeta { id, event_id, .. } = &record.meta;
        let context = self.service.of_event(event_id.clone());
        for release in release {
            let (task_id, done) = (id.clone(), release.done);
            let input = WorklistInput::Release { task_id, done };
            self.step_worklist(&release.agent, &context, &input).await?;
        }
        for agent in ask {
            // An end that is not known here yet gives the place back.
            let known = self.tasks.load_up_to(id, record.sequence).await?.state;
            let Some(opened) = known.opened.as_ref().filter(|_| known.waits_for(agent)) else {
                continue;
            };
            let capacity = self.capacity_of(agent).await?;
            let taken = WorkTaken {
                task_id: id.clone(),
                priority: opened.terms.priority,
                capacity,
            };
            let input = WorklistInput::Take(taken);
            if let Some(fault) = self.step_worklist(agent, &context, &input).await? {
                let cause = MessageId::derived(&format!("{event_id}/{agent}"));
                let context = self.service.of_event(cause);
                self.lose(id, &context, agent, fault.message).await?;
            }
        }
        Ok(())
    }

    /// How many tasks an agent may have at a time; `None` for no limit.
    async fn capacity_of(&self, agent: &AgentId) -> Result<Option<u32>, HandleError> {
        if let Some(known) = self.directory.agent(agent)
            && let Some(card) = &known.card
        {
            return Ok(card.capacity);
        }
        // This process has not heard of it yet, or it has left.
        let id = agent.token();
        if let Some(card) = &self.agents.load(&id).await?.state.card {
            return Ok(card.capacity);
        }
        let known = self.worklists.to_read().load(&id).await?;
        Ok(known.state.capacity_of_absent())
    }

    /// Gives an agent the task for which there is room now.
    pub(crate) async fn heard_of_place(
        &self,
        record: &StoredEvent<WorklistEvent>,
    ) -> Result<(), HandleError> {
        let EventMeta { id, event_id, .. } = &record.meta;
        let Ok(agent) = AgentId::new(id.as_str()) else {
            return Ok(());
        };
        let task_id = match &record.event {
            WorklistEvent::Taken(taken) => &taken.task_id,
            WorklistEvent::Released(released) => match &released.next {
                Some(next) => next,
                None => return Ok(()),
            },
            WorklistEvent::Queued(_) => return Ok(()),
        };
        let context = self.service.of_event(event_id.clone());
        let gone = self.why_gone(&agent).await?;
        let place = TaskInput::Place {
            agent: agent.clone(),
            gone,
        };
        self.step_task(task_id, &context, &place).await?;
        // A place may have been taken by a process that was slow, when the task had ended or had been lost. The task is as the step has
        // just left it: what comes after that gives the place back.
        let task = self.tasks.load_up_to(task_id, 1).await?.state;
        if !task.needs_place(&agent) {
            let (task_id, done) = (task_id.clone(), None);
            let input = WorklistInput::Release { task_id, done };
            self.step_worklist(&agent, &context, &input).await?;
        }
        Ok(())
    }

    /// Takes the tasks from an agent that is not there any more, and gives one that has registered what it has room for.
    pub(crate) async fn heard_of_agent(
        &self,
        record: &StoredEvent<AgentEvent>,
    ) -> Result<(), HandleError> {
        let (agent, why) = match &record.event {
            AgentEvent::Silent(silent) if silent.retry_at.is_some() => {
                (&silent.agent_id, "It does not answer.")
            }
            AgentEvent::Registered(registered) => {
                let agent = &registered.card.agent_id;
                return self.heard_of_card(agent, &record.meta.event_id).await;
            }
            AgentEvent::Silent(_) | AgentEvent::Answered(_) | AgentEvent::Retried(_) => {
                return Ok(());
            }
            AgentEvent::Deregistered(left) => (&left.agent_id, "It has left the register."),
            AgentEvent::StatusChanged(changed) => match changed.status {
                AgentStatus::Unavailable => (&changed.agent_id, "It is unavailable."),
                AgentStatus::Available | AgentStatus::Busy => return Ok(()),
            },
        };
        let context = self.service.of_event(record.meta.event_id.clone());
        let known = self.worklists.to_read().load(&agent.token()).await?.state;
        for task_id in known.held.iter().chain(known.waiting.keys()) {
            self.lose(task_id, &context, agent, why.to_owned()).await?;
        }
        Ok(())
    }

    async fn lose(
        &self,
        task_id: &Token,
        context: &Context,
        agent: &AgentId,
        why: String,
    ) -> Result<(), HandleError> {
        let agent = agent.clone();
        self.step_task(task_id, context, &TaskInput::Lost { agent, why })
            .await
    }

    async fn step_task(
        &self,
        id: &Token,
        context: &Context,
        input: &TaskInput,
    ) -> Result<(), HandleError> {
        let outcome = self.tasks.step(id, context, input, None).await?;
        self.service.count_step::<TaskMachine>(&outcome);
        Ok(())
    }

    /// One step of a worklist: the fault, where it was refused.
    async fn step_worklist(
        &self,
        agent: &AgentId,
        context: &Context,
        input: &WorklistInput,
    ) -> Result<Option<Fault>, step::Error> {
        let stepped = self.worklists.step(&agent.token(), context, input).await?;
        Ok(stepped.fault)
    }
}
