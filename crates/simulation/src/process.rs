//! The services' processes: which consumer feeds which machine, as in the services' own crates, on the real step.

use std::num::NonZeroUsize;
use std::sync::Arc;

use concord_debate_facilitator::route::FollowUp;
use concord_domain::activation::conversation::WakeMachine;
use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::deadline::DeadlineMachine;
use concord_domain::aggregates::debate::{DebateInput, DebateMachine, Eligibility, OutcomeMessage};
use concord_domain::aggregates::detection::DetectionMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_domain::aggregates::review_queue::{self, ReviewQueueMachine};
use concord_domain::{Context, Machine};
use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_events::{DeadlineEvent, EventMeta, StoredEvent};
use concord_runtime::{Aggregates, Outcome, Routed, delivery::reject_all, event_store::effects};
use concord_wire::subject::Service;
use concord_wire::{CaseId, Fault, dialect};

use crate::agents::operators::{Operation, Verb};
use crate::injected_bugs;
use crate::ledger::SimLedger;
use crate::network::Connection;
use crate::refuse;
use crate::timer;

/// After so many deliveries a service gives up and keeps the original among the dead.
const DELIVERIES_MAX: u32 = 20;

/// One delivery of a consumer.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) consumer: usize,
    pub(crate) name: String,
    pub(crate) kind: ConsumerKind,
    pub(crate) stream: StreamKind,
    pub(crate) sequence: u64,
    pub(crate) deliveries: u32,
    pub(crate) subject: String,
    pub(crate) body: Arc<[u8]>,
}

/// Why a delivery was not handled.
pub(crate) enum HandleError {
    /// It cannot be used.
    Refused(Fault),
    /// Something failed; it is tried again.
    Failed,
}

impl From<Fault> for HandleError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<concord_runtime::event_store::step::Error> for HandleError {
    fn from(_: concord_runtime::event_store::step::Error) -> Self {
        Self::Failed
    }
}

impl From<concord_runtime::event_store::Error> for HandleError {
    fn from(_: concord_runtime::event_store::Error) -> Self {
        Self::Failed
    }
}

impl From<concord_events::Error> for HandleError {
    fn from(_: concord_events::Error) -> Self {
        Self::Failed
    }
}

/// What a process has in memory, and loses when it dies.
pub(crate) struct Process {
    pub(crate) service: Service,
    pub(crate) connection: Connection,
    pub(crate) ledger: SimLedger,
    cases: Aggregates<CaseMachine, SimLedger>,
    detections: Aggregates<DetectionMachine, SimLedger>,
    debates: Aggregates<DebateMachine, SimLedger>,
    queue: Aggregates<ReviewQueueMachine, SimLedger>,
    agents: Aggregates<AgentMachine, SimLedger>,
    pub(crate) requests: Aggregates<RequestMachine, SimLedger>,
    pub(crate) conversations: Aggregates<WakeMachine, SimLedger>,
    pub(crate) deadlines: Aggregates<DeadlineMachine, SimLedger>,
}

impl Process {
    /// A process with room for `cached_max` aggregates of each kind: few, so that some are let go while in use.
    pub(crate) fn new(service: Service, connection: Connection, cached_max: NonZeroUsize) -> Self {
        let ledger = SimLedger(connection.clone());
        Self {
            service,
            cases: Aggregates::new(ledger.clone(), cached_max),
            detections: Aggregates::new(ledger.clone(), cached_max),
            debates: Aggregates::new(ledger.clone(), cached_max),
            queue: Aggregates::new(ledger.clone(), cached_max),
            agents: Aggregates::new(ledger.clone(), cached_max),
            requests: Aggregates::new(ledger.clone(), cached_max),
            conversations: Aggregates::new(ledger.clone(), cached_max),
            deadlines: Aggregates::new(ledger.clone(), cached_max),
            connection,
            ledger,
        }
    }

    /// Handles a delivery, from its arrival to its acknowledgement.
    pub(crate) async fn work(&self, delivery: Delivery) {
        if self.connection.plant() == Some(crate::faults::Plant::AckFirst) {
            self.acknowledge(&delivery).await;
        }
        let done = if delivery.deliveries > DELIVERIES_MAX {
            refuse::give_up(self, &delivery).await
        } else {
            match self.handle(&delivery).await {
                Ok(()) => true,
                Err(HandleError::Refused(fault)) => {
                    refuse::refuse(self, &delivery, &fault).await.is_ok()
                }
                Err(HandleError::Failed) if delivery.deliveries == DELIVERIES_MAX => {
                    refuse::give_up(self, &delivery).await
                }
                Err(HandleError::Failed) => false,
            }
        };
        if done {
            self.acknowledge(&delivery).await;
        } else {
            self.put_back(&delivery).await;
        }
    }

    async fn handle(&self, delivery: &Delivery) -> Result<(), HandleError> {
        match (delivery.kind, self.service) {
            (ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_), _) => self.hear(delivery).await,
            (ConsumerKind::Events(_), Service::ConflictDetector) => self.detect(delivery).await,
            (ConsumerKind::Events(_), _) => self.react(delivery).await,
            (ConsumerKind::Effects(_), Service::Coordinator) => match self.aggregate_of(delivery) {
                Some(Aggregate::Agent) => self.publish::<AgentMachine>(delivery).await,
                Some(Aggregate::Request) => self.publish::<RequestMachine>(delivery).await,
                _ => self.publish::<CaseMachine>(delivery).await,
            },
            (ConsumerKind::Exchange, _) => self.exchange(delivery).await,
            (ConsumerKind::Effects(_), Service::ConflictDetector) => {
                self.publish::<DetectionMachine>(delivery).await
            }
            (ConsumerKind::Effects(_), Service::AgentAdapter) => {
                self.publish::<WakeMachine>(delivery).await
            }
            (ConsumerKind::Effects(_), _) => self.publish::<DebateMachine>(delivery).await,
            (ConsumerKind::Deadlines, _) => timer::arm(self, delivery).await,
            (ConsumerKind::Due, _) => timer::due(self, delivery).await,
            // People outside are notified of nothing that is simulated.
            (ConsumerKind::Notices(_) | ConsumerKind::Completions, _) => Ok(()),
            (ConsumerKind::Wake, _) => self.wake(delivery).await,
        }
    }

    /// A message to a service.
    async fn hear(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let subject = self
            .connection
            .subjects()
            .parse(&delivery.subject)
            .map_err(|error| {
                Fault::invalid(
                    "",
                    format!("The subject cannot be read: {error}."),
                    "See docs/subjects.md.",
                )
            })?;
        let (envelope, _) = dialect::read(&delivery.body, None, &subject)?;
        let context = Context::of_message(self.connection.now(), envelope.message_id.clone());
        match self.service {
            Service::Coordinator => {
                match concord_coordinator::route::register::from_message(&envelope)? {
                    Some(routed) => step(&self.agents, &context, routed).await,
                    None => {
                        step(
                            &self.cases,
                            &context,
                            concord_coordinator::route::from_message(&envelope)?,
                        )
                        .await
                    }
                }
            }
            Service::DebateFacilitator => {
                let routed = self
                    .prepared(concord_debate_facilitator::route::from_message(&envelope)?)
                    .await?;
                match injected_bugs::ruled_badly(self, &context, routed).await? {
                    Some(routed) => step(&self.debates, &context, routed).await,
                    None => Ok(()),
                }
            }
            service => Ok(reject_all::ignore(service, &envelope).map(|_| ())?),
        }
    }

    /// With what is read elsewhere: whose word on what proved right counts. Track records and precedents are not simulated.
    async fn prepared(
        &self,
        routed: Routed<DebateInput>,
    ) -> Result<Routed<DebateInput>, HandleError> {
        let Routed::Step {
            id,
            input: DebateInput::Outcome(told),
        } = routed
        else {
            return Ok(routed);
        };
        let queue = self.queue.load(&review_queue::id()).await?;
        let case = match &told.case_id {
            Some(case) => Some(self.cases.load(&case.token()).await?),
            None => None,
        };
        let eligibility = Eligibility::of(
            &told.agent_id,
            case.as_ref().map(|case| &case.state),
            &queue.state,
        );
        Ok(Routed::Step {
            id,
            input: DebateInput::Outcome(Box::new(OutcomeMessage {
                eligibility,
                ..*told
            })),
        })
    }

    /// A fact of another service, for the coordinator or the facilitator.
    async fn react(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let Some((aggregate, context)) = self.fact(delivery) else {
            return Err(HandleError::Failed);
        };
        let (bytes, sequence) = (&delivery.body, delivery.sequence);
        match self.service {
            Service::Coordinator => {
                if aggregate == Aggregate::Deadline {
                    let elapsed = StoredEvent::<DeadlineEvent>::decode(bytes, sequence)?
                        .event
                        .into_elapsed();
                    if elapsed.aggregate == Aggregate::Request {
                        return self.request_elapsed(&context, elapsed).await;
                    }
                }
                let routed = concord_coordinator::route::from_fact(aggregate, bytes, sequence)?;
                step(&self.cases, &context, routed).await
            }
            _ => {
                for follow_up in
                    concord_debate_facilitator::route::follows(aggregate, bytes, sequence)?
                {
                    let done = match follow_up {
                        FollowUp::Debate(id, input) => {
                            step(&self.debates, &context, Routed::Step { id, input }).await
                        }
                        FollowUp::Queue(input)
                            if injected_bugs::assigned_badly(self, &context, &input).await? =>
                        {
                            Ok(())
                        }
                        FollowUp::Queue(input) => {
                            step(
                                &self.queue,
                                &context,
                                Routed::Step {
                                    id: review_queue::id(),
                                    input,
                                },
                            )
                            .await
                        }
                        // Track records and precedents are not simulated.
                        FollowUp::Verdict(_) | FollowUp::Outcome(..) => Ok(()),
                    };
                    // What follows from a fact may be out of date; the service passes over it too.
                    match done {
                        Err(HandleError::Refused(_)) | Ok(()) => {}
                        failed => return failed,
                    }
                }
                Ok(())
            }
        }
    }

    /// What an operator asks for by the service's API.
    pub(crate) async fn operate(&self, operation: &Operation) {
        let context = Context::of_message(self.connection.now(), operation.id.clone());
        let done = match &operation.verb {
            Verb::Queue(input) => {
                step(
                    &self.queue,
                    &context,
                    Routed::Step {
                        id: review_queue::id(),
                        input: input.clone(),
                    },
                )
                .await
            }
            Verb::Debate(id, input) => {
                step(
                    &self.debates,
                    &context,
                    Routed::Step {
                        id: id.clone(),
                        input: input.clone(),
                    },
                )
                .await
            }
            Verb::Case(id, input) => {
                step(
                    &self.cases,
                    &context,
                    Routed::Step {
                        id: id.clone(),
                        input: input.clone(),
                    },
                )
                .await
            }
        };
        // Whoever asked is told, and nothing else comes of it.
        if let Err(HandleError::Refused(fault)) = done {
            self.connection
                .world
                .lock()
                .note(|| format!("refused an operator: {fault}"));
        }
    }

    /// A case whose findings are closed, for the detector.
    async fn detect(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let Some((_, context)) = self.fact(delivery) else {
            return Err(HandleError::Failed);
        };
        let id = EventMeta::decode(&delivery.body)?.id;
        let known = self.cases.load(&id).await?;
        let case = CaseId::new(id.as_str()).map_err(|_| HandleError::Failed)?;
        let Some(input) = concord_conflict_detector::route::from_case(&case, &known.state) else {
            return Err(HandleError::Failed);
        };
        step(&self.detections, &context, Routed::Step { id, input }).await
    }

    fn fact(&self, delivery: &Delivery) -> Option<(Aggregate, Context)> {
        let Ok(SystemSubject::Event { aggregate, .. }) =
            self.connection.subjects().parse(&delivery.subject)
        else {
            return None;
        };
        let meta = EventMeta::decode(&delivery.body).ok()?;
        Some((
            aggregate,
            Context::of_event(self.connection.now(), meta.event_id),
        ))
    }

    async fn publish<M: Machine>(&self, delivery: &Delivery) -> Result<(), HandleError> {
        let record = StoredEvent::<M::Event>::decode(&delivery.body, delivery.sequence)?;
        effects::deliver::<M>(&self.ledger, &record, None).await?;
        Ok(())
    }

    async fn acknowledge(&self, delivery: &Delivery) {
        let Delivery {
            consumer, sequence, ..
        } = *delivery;
        // When this is lost the delivery comes again, and changes nothing.
        let _ = self
            .connection
            .send(crate::network::Request::Acknowledge { consumer, sequence })
            .await;
    }

    async fn put_back(&self, delivery: &Delivery) {
        let Delivery {
            consumer,
            sequence,
            deliveries,
            ..
        } = *delivery;
        // The waits of the runtime: from 50 ms, doubled each time.
        let wait_ms = 25 << deliveries.min(8);
        let _ = self
            .connection
            .send(crate::network::Request::PutBack {
                consumer,
                sequence,
                wait_ms,
            })
            .await;
    }
}

/// Does the step that something was routed to.
pub(crate) async fn step<M: Machine>(
    aggregates: &Aggregates<M, SimLedger>,
    context: &Context,
    routed: Routed<M::Input>,
) -> Result<(), HandleError> {
    let Routed::Step { id, input } = routed else {
        return Ok(());
    };
    match aggregates.step(&id, context, &input, None).await? {
        Outcome::Rejected(fault) => Err(fault.into()),
        Outcome::Appended { .. } | Outcome::Ignored(_) => Ok(()),
    }
}
