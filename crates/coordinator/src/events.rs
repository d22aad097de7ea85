//! Events: those of others become steps, the coordinator's own become effects. A place of a quota that was taken is looked at
//! once more.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::alert::AlertMachine;
use concord_domain::aggregates::board::BoardMachine;
use concord_domain::aggregates::case::{CaseMachine, heard_in_time};
use concord_domain::aggregates::commitment::CommitmentMachine;
use concord_domain::aggregates::impact::ImpactMachine;
use concord_domain::aggregates::memory::MemoryMachine;
use concord_domain::aggregates::question::QuestionMachine;
use concord_domain::aggregates::request::{RequestInput, RequestMachine};
use concord_domain::aggregates::synthesis::SynthesisMachine;
use concord_domain::aggregates::task::TaskMachine;
use concord_events::Aggregate;
use concord_events::{AgentEvent, DeadlineElapsed, DeadlineEvent, EventMeta, StoredEvent};
use concord_runtime::delivery::handlers::{self, EffectHandler, EventHandler};
use concord_runtime::delivery::in_time::InTime;
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory, Ports};
use concord_wire::CaseId;

use crate::openers::Openers;
use crate::questions::Questions;
use crate::shared::Shared;
use crate::silence::Silence;
use crate::tasks::Tasks;
use crate::{exchange, route};

/// Events of others, and the places that openers have taken.
pub(crate) struct OthersEvents<P> {
    service: ServiceContext<P>,
    in_time: InTime<P>,
    cases: EventHandler<P, CaseMachine>,
    requests: Arc<Aggregates<RequestMachine, P>>,
    openers: Openers<P>,
    tasks: Tasks<P>,
    shared: Shared<P>,
    questions: Questions<P>,
}

impl<P: Ports> OthersEvents<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        cases: &Arc<Aggregates<CaseMachine, P>>,
        requests: &Arc<Aggregates<RequestMachine, P>>,
        openers: &Openers<P>,
        (tasks, shared, questions): (&Tasks<P>, &Shared<P>, &Questions<P>),
    ) -> Self {
        let cases = EventHandler::new(service, cases, route::from_event);
        Self {
            service: service.clone(),
            in_time: InTime::new(service),
            cases,
            requests: Arc::clone(requests),
            openers: openers.clone(),
            tasks: tasks.clone(),
            shared: shared.clone(),
            questions: questions.clone(),
        }
    }

    /// A request has run out of time, unless an answer waits in a queue: what was stored in time counts.
    async fn request_elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let known = self.requests.load(&elapsed.id).await?;
        let unread = match &known.state.opened {
            Some(opened) if known.state.ended.is_none() => {
                exchange::find_unread_answer(&self.service.ports, opened).await?
            }
            _ => None,
        };
        let context = self
            .service
            .of_event(EventMeta::decode(&delivery.payload)?.event_id);
        let (id, unread) = (elapsed.id.clone(), unread.map(Box::new));
        let input = RequestInput::Elapsed { elapsed, unread };
        handlers::step(
            &self.service,
            &self.requests,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
    }
}

impl<P: Ports> Handler for OthersEvents<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        match handlers::aggregate_of(&self.service, delivery)? {
            (Aggregate::Deadline, _) => {
                let StoredEvent { meta, event, .. } =
                    StoredEvent::<DeadlineEvent>::decode(&delivery.payload, delivery.sequence)?;
                let elapsed = event.into_elapsed();
                match elapsed.aggregate {
                    Aggregate::Case => {
                        if let Ok(case) = CaseId::new(elapsed.id.as_str()) {
                            let known = self.openers.cases.load(&elapsed.id).await?;
                            let heard = heard_in_time(&known.state);
                            self.in_time.wait(&case, &heard, &elapsed).await?;
                        }
                    }
                    Aggregate::Request => return self.request_elapsed(delivery, elapsed).await,
                    Aggregate::Commitment => return self.shared.elapsed(delivery, elapsed).await,
                    Aggregate::Question => return self.questions.elapsed(delivery, elapsed).await,
                    Aggregate::Alert => return self.shared.report_elapsed(delivery, elapsed).await,
                    Aggregate::Synthesis => {
                        return self.shared.synthesis_elapsed(delivery, elapsed).await;
                    }
                    Aggregate::Task => return self.tasks.elapsed(delivery, elapsed).await,
                    _ => {
                        let of_case = route::of_deadline(elapsed);
                        return self.cases.take(of_case, &meta, delivery).await;
                    }
                }
            }
            (Aggregate::Wake, _) => return self.questions.decided(delivery).await,
            (Aggregate::Worklist, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                self.tasks.heard_of_place(&record).await?;
                return Ok(Ack::Acknowledge);
            }
            (Aggregate::Debate, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let of_case = route::of_debate(&record.event);
                let done = self.cases.take(of_case, &record.meta, delivery).await?;
                self.shared.heard_of_debate(&record).await?;
                return Ok(done);
            }
            (Aggregate::Detection, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let of_case = route::of_detection(&record.event);
                let done = self.cases.take(of_case, &record.meta, delivery).await?;
                self.shared.heard_of_conflicts(&record).await?;
                self.shared.heard_of_detection(&record).await?;
                return Ok(done);
            }
            (Aggregate::Opener, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                self.openers.heard_admission(&record).await?;
                self.tasks.heard_admission(&record).await?;
                return Ok(Ack::Acknowledge);
            }
            _ => {}
        }
        self.cases.handle(delivery).await
    }
}

/// The coordinator's own events.
pub(crate) struct OwnEvents<P> {
    service: ServiceContext<P>,
    directory: Arc<Directory>,
    cases: EffectHandler<P, CaseMachine>,
    agents: EffectHandler<P, AgentMachine>,
    requests: EffectHandler<P, RequestMachine>,
    boards: EffectHandler<P, BoardMachine>,
    commitments: EffectHandler<P, CommitmentMachine>,
    questions: EffectHandler<P, QuestionMachine>,
    analyses: EffectHandler<P, ImpactMachine>,
    memories: EffectHandler<P, MemoryMachine>,
    syntheses: EffectHandler<P, SynthesisMachine>,
    alerts: EffectHandler<P, AlertMachine>,
    openers: Openers<P>,
    effects_of_tasks: EffectHandler<P, TaskMachine>,
    tasks: Tasks<P>,
    shared: Shared<P>,
    silence: Silence<P>,
}

impl<P: Ports> OwnEvents<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        directory: &Arc<Directory>,
        openers: &Openers<P>,
        (tasks, shared): (&Tasks<P>, &Shared<P>),
        silence: Silence<P>,
    ) -> Self {
        Self {
            service: service.clone(),
            directory: Arc::clone(directory),
            cases: EffectHandler::new(service),
            agents: EffectHandler::new(service),
            requests: EffectHandler::new(service),
            boards: EffectHandler::new(service),
            commitments: EffectHandler::new(service),
            questions: EffectHandler::new(service),
            analyses: EffectHandler::new(service),
            memories: EffectHandler::new(service),
            syntheses: EffectHandler::new(service),
            alerts: EffectHandler::new(service),
            openers: openers.clone(),
            effects_of_tasks: EffectHandler::new(service),
            tasks: tasks.clone(),
            shared: shared.clone(),
            silence,
        }
    }
}

impl<P: Ports> Handler for OwnEvents<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        match handlers::aggregate_of(&self.service, delivery)? {
            (Aggregate::Agent, _) => {
                // Who registers is answered in the dialect that it has just declared.
                let record =
                    StoredEvent::<AgentEvent>::decode(&delivery.payload, delivery.sequence)?;
                self.directory.apply_early(&record);
                let done = self.agents.take(&record, delivery).await?;
                self.tasks.heard_of_agent(&record).await?;
                self.shared.heard_of_agent(&record).await?;
                Ok(done)
            }
            (Aggregate::Request, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.requests.take(&record, delivery).await?;
                self.silence.heard_of_request(&record).await?;
                Ok(done)
            }
            (Aggregate::Task, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.effects_of_tasks.take(&record, delivery).await?;
                self.tasks.follow(&record).await?;
                self.silence.heard_of_task(&record, &self.tasks).await?;
                self.shared.end_commitments(&record, &self.tasks).await?;
                self.shared.heard_of_task(&record, &self.tasks).await?;
                Ok(done)
            }
            (Aggregate::Board, _) => self.boards.handle(delivery).await,
            (Aggregate::Commitment, _) => self.commitments.handle(delivery).await,
            (Aggregate::Question, _) => self.questions.handle(delivery).await,
            (Aggregate::Memory, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.memories.take(&record, delivery).await?;
                self.shared.raise_fired(&record).await?;
                self.shared.heard_of_memory(&record).await?;
                Ok(done)
            }
            (Aggregate::Alert, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.alerts.take(&record, delivery).await?;
                self.shared.follow_alert(&record).await?;
                Ok(done)
            }
            (Aggregate::Synthesis, _) => self.syntheses.handle(delivery).await,
            (Aggregate::Impact, _) => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.analyses.take(&record, delivery).await?;
                self.shared.follow_run(&record, &self.tasks).await?;
                Ok(done)
            }
            _ => {
                let record = StoredEvent::decode(&delivery.payload, delivery.sequence)?;
                let done = self.cases.take(&record, delivery).await?;
                self.openers.heard(&record).await?;
                self.tasks.heard_of_case(&record).await?;
                self.shared.heard_of_case(&record).await?;
                self.shared.heard_of_decision(&record).await?;
                self.shared.checkpoint_of_case(&record).await?;
                Ok(done)
            }
        }
    }
}
