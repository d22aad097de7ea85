//! A service's process: its handlers as the service's own crate binds them, on the ports of this world.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use concord_coordinator::CoordinatorSettings;
use concord_coordinator::holdings::Holdings;
use concord_coordinator::route::shared::SharedBounds;
use concord_coordinator::silence::retry_due;
use concord_debate_facilitator::QuotaSettings;
use concord_domain::aggregates::agent::AgentMachine;
use concord_escalation_timer::Watchdog;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_events::{
    AgentEvent, Aggregate, CommitmentEvent, LeaseBounds, MemoryBounds, QuestionBounds, Quotas,
    SilenceBounds, StoredEvent,
};
use concord_runtime::broker::Operation as Asked;
use concord_runtime::delivery::settle::{Settlement, settle};
use concord_runtime::delivery::{Delivery, Handler};
use concord_runtime::service::api::{Call, Verb};
use concord_runtime::service::metrics::Metrics;
use concord_runtime::service::owned::{Answerer, Owners};
use concord_runtime::service::settings::WorkSettings;
use concord_runtime::service::{Binder, ServiceContext};
use concord_runtime::{Aggregates, Directory};
use concord_wire::subject::Service;

use crate::activation;
use crate::agents::operators::Operation;
use crate::faults::InjectedBug;
use crate::injected_bugs::{self, early_ack};
use crate::network::{Connection, Request};
use crate::owners::SimOwners;
use crate::ports::SimPorts;

/// How long the watchdog leaves an overdue deadline to the broker.
const WATCHDOG_GRACE_MS: u64 = 5_000;
/// Debates of one opener that may wait for a person: few, so that openers exceed it.
const OPENER_WAITING_MAX: u32 = 3;

/// What openers who are no operators may have: so little that some are refused.
const QUOTAS: Quotas = Quotas {
    open_cases: 3,
    gates: 4,
    challenges: 3,
    open_tasks: 3,
};

/// How long commitments last, and how many an agent has: few, so that some are refused.
const LEASES: LeaseBounds = LeaseBounds {
    lease_ms: 2_500,
    lease_max_ms: 5_000,
    per_agent: 2,
};

/// What bounds what is shared: of memory so little is kept that some is refused.
pub(crate) const SHARED: SharedBounds = SharedBounds {
    leases: LEASES,
    memory: MemoryBounds {
        bytes_max: 2_000,
        versions_max: 4,
        topics_max: 2,
    },
};

/// How much agents may let pass: so little that some are unavailable for it, and for longer than a step takes.
const SILENCE: SilenceBounds = SilenceBounds {
    silent_max: 3,
    open_ms: 10_000,
    open_max_ms: 20_000,
    answer_ms_min: 0,
};

/// How long answers to questions are awaited: so short that some come late.
pub(crate) const QUESTIONS: QuestionBounds = QuestionBounds {
    answer_ms: 6_000,
    answer_ms_max: 12_000,
};

/// The quotas that hold openers; none where a bug is injected that does not look at them.
fn quotas(connection: &Connection) -> Quotas {
    match connection.injected_bug() {
        Some(InjectedBug::QuotaUnchecked) => Quotas {
            open_cases: 0,
            gates: 0,
            challenges: 0,
            open_tasks: 0,
        },
        _ => QUOTAS,
    }
}

/// One delivery of a consumer.
pub(crate) struct Assignment {
    pub(crate) consumer: usize,
    pub(crate) kind: ConsumerKind,
    pub(crate) delivery: Delivery,
}

type Settled<'a> = Pin<Box<dyn Future<Output = (Settlement, &'static str)> + Send + 'a>>;

/// A handler of any type.
trait AnyHandler: Send + Sync {
    fn settle<'a>(
        &'a self,
        context: &'a ServiceContext<SimPorts>,
        delivery: &'a Delivery,
    ) -> Settled<'a>;
}

impl<H: Handler> AnyHandler for H {
    fn settle<'a>(
        &'a self,
        context: &'a ServiceContext<SimPorts>,
        delivery: &'a Delivery,
    ) -> Settled<'a> {
        Box::pin(settle(context, self, delivery))
    }
}

/// What a service has bound.
struct Bound {
    handlers: BTreeMap<ConsumerKind, Arc<dyn AnyHandler>>,
    verbs: BTreeMap<&'static str, Verb>,
    answerers: BTreeMap<Aggregate, Answerer>,
    others: Arc<dyn Owners>,
}

impl Bound {
    fn new(others: SimOwners) -> Self {
        Self {
            handlers: BTreeMap::new(),
            verbs: BTreeMap::new(),
            answerers: BTreeMap::new(),
            others: Arc::new(others),
        }
    }
}

impl Binder for Bound {
    fn handle<H: Handler>(&mut self, kind: ConsumerKind, handler: H) {
        let earlier = self.handlers.insert(kind, Arc::new(handler));
        debug_assert!(earlier.is_none(), "{kind:?} is bound twice");
    }

    /// How many deliveries are under way at once is not simulated.
    fn handle_many<H: Handler>(&mut self, kind: ConsumerKind, _: usize, handler: H) {
        self.handle(kind, handler);
    }

    fn answer(&mut self, name: &'static str, verb: Verb) {
        self.verbs.insert(name, verb);
    }

    fn own(&mut self, aggregate: Aggregate, answerer: Answerer) -> Arc<dyn Owners> {
        self.answerers.insert(aggregate, answerer);
        Arc::clone(&self.others)
    }
}

/// What a process has in memory, and loses when it dies.
pub(crate) struct Process {
    context: ServiceContext<SimPorts>,
    bound: Bound,
    /// Who is registered, as the process follows the stream of events, with the first sequence that it has not read.
    directory: Arc<Directory>,
    holdings: Arc<Holdings>,
    followed: Mutex<u64>,
    agents: Aggregates<AgentMachine, SimPorts>,
    watchdog: Option<tokio::sync::Mutex<Watchdog<SimPorts>>>,
}

impl Process {
    /// A process with room for `cached_bytes_max` bytes of aggregates: few, so that some are let go while in use.
    pub(crate) fn new(service: Service, connection: Connection, cached_bytes_max: usize) -> Self {
        let work = WorkSettings {
            cached_bytes_max,
            ..WorkSettings::default()
        };
        let metrics = Metrics::default();
        let own = CoordinatorSettings {
            quota: quotas(&connection),
            commitment: SHARED.leases,
            memory: SHARED.memory,
            question: QUESTIONS,
            silence: SILENCE,
        };
        let others = SimOwners {
            connection: connection.clone(),
            service,
        };
        let mut bound = Bound::new(others);
        let ports = SimPorts::new(service, connection);
        let context = ServiceContext::new(service, ports, metrics, Arc::new(work));
        let directory = Arc::new(Directory::new());
        let holdings = Arc::new(Holdings::default());
        let mut watchdog = None;
        match service {
            Service::Coordinator => {
                concord_coordinator::bind(&context, (&directory, &holdings), &own, &mut bound);
            }
            Service::ConflictDetector => {
                concord_conflict_detector::bind(&context, None, &mut bound);
            }
            Service::DebateFacilitator => {
                let quota = QuotaSettings {
                    waiting_debates: OPENER_WAITING_MAX,
                };
                concord_debate_facilitator::bind(&context, &quota, &mut bound);
            }
            Service::EscalationTimer => {
                let bound = &mut bound;
                let timer = concord_escalation_timer::bind(&context, WATCHDOG_GRACE_MS, bound);
                watchdog = Some(tokio::sync::Mutex::new(timer));
            }
            Service::AgentAdapter => activation::bind(&context, &mut bound),
        }
        Self {
            agents: Aggregates::new(context.ports.clone(), &context.cache),
            context,
            bound,
            directory,
            holdings,
            followed: Mutex::new(1),
            watchdog,
        }
    }

    fn connection(&self) -> &Connection {
        &self.context.ports.connection
    }

    /// Handles a delivery, from its arrival to its acknowledgement.
    pub(crate) async fn work(&self, assignment: Assignment) {
        let Assignment {
            consumer,
            kind,
            delivery,
        } = assignment;
        let sequence = delivery.sequence;
        self.follow_events();
        if self.connection().injected_bug() == Some(InjectedBug::AckFirst) {
            self.acknowledge(consumer, sequence).await;
        }
        let Some(handler) = self.bound.handlers.get(&kind) else {
            // People outside are notified of nothing that is simulated.
            return self.acknowledge(consumer, sequence).await;
        };
        // What fails of an injected bug has not happened.
        let _ = injected_bugs::before(&self.context, &delivery).await;
        let settled = handler.settle(&self.context, &delivery);
        let (settlement, verdict) = early_ack::handling((kind, consumer, sequence), settled).await;
        self.note(&delivery, verdict);
        match settlement {
            Settlement::Acknowledge | Settlement::Terminate => {
                self.acknowledge(consumer, sequence).await;
            }
            Settlement::PutBack(wait) => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let request = Request::PutBack {
                    consumer,
                    sequence,
                    wait_ms,
                };
                let _ = self.connection().send(request).await;
            }
        }
    }

    fn note(&self, delivery: &Delivery, verdict: &str) {
        let mut world = self.connection().world.lock();
        match verdict {
            "dead" => world.give_up(delivery),
            "refused" | "failed" => world.note(|| {
                let Delivery {
                    subject, sequence, ..
                } = delivery;
                format!("{verdict}: {subject} at {sequence}")
            }),
            _ => {}
        }
    }

    async fn acknowledge(&self, consumer: usize, sequence: u64) {
        // When this is lost the delivery comes again, and changes nothing.
        let request = Request::Acknowledge { consumer, sequence };
        let _ = self.connection().send(request).await;
    }

    /// Takes the events of agents and commitments into account that were stored since the last delivery.
    fn follow_events(&self) {
        if self.context.service != Service::Coordinator {
            return;
        }
        let mut next = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let world = self.connection().world.lock();
        let events = world.broker.messages(StreamKind::Events);
        let skipped = usize::try_from(next.saturating_sub(1)).unwrap_or(usize::MAX);
        for stored in events.iter().skip(skipped) {
            let body = &stored.publication.body;
            if stored.publication.subject.contains(".event.agent.")
                && let Ok(event) = StoredEvent::<AgentEvent>::decode(body, stored.sequence)
            {
                self.directory.apply(event);
            }
            if stored.publication.subject.contains(".event.commitment.")
                && let Ok(event) = StoredEvent::<CommitmentEvent>::decode(body, stored.sequence)
            {
                self.holdings.apply(&event);
            }
        }
        *next = events.len() as u64 + 1;
    }

    /// Looks whether agents that were silent are to be tried again.
    pub(crate) async fn retry(&self) {
        let is_coordinator = self.context.service == Service::Coordinator;
        if !is_coordinator || self.connection().injected_bug() == Some(InjectedBug::NeverRetried) {
            return;
        }
        self.follow_events();
        retry_due(&self.context, &self.agents, &self.directory).await;
    }

    /// What another replica asks for.
    pub(crate) async fn answer(&self, aggregate: Aggregate, request: Bytes) -> Option<Bytes> {
        let answerer = self.bound.answerers.get(&aggregate)?;
        answerer(request).await
    }

    /// What an operator asks for by the service's API.
    pub(crate) async fn operate(&self, operation: &Operation) {
        let (name, request) = operation.request();
        let Some(verb) = self.bound.verbs.get(name) else {
            debug_assert!(false, "{:?} has no verb {name}", self.context.service);
            return;
        };
        self.context.ports.set_next_unique(&operation.unique);
        // Whoever asked is told, and nothing else comes of it.
        if let Err(fault) = verb(Call::of_operator(Bytes::from(request))).await {
            let mut world = self.connection().world.lock();
            world.note(|| format!("refused an operator: {fault}"));
        }
    }

    /// What an operator asks for by the service's API, under a text that nobody has used before.
    #[cfg(test)]
    pub(crate) async fn order(&self, verb: &str, unique: &str, request: Bytes) {
        self.context.ports.set_next_unique(unique);
        let verb = &self.bound.verbs[verb];
        verb(Call::of_operator(request)).await.unwrap();
    }

    /// A round of the escalation timer's watchdog, unless the last one is still under way.
    pub(crate) async fn watch(&self) {
        if self.connection().injected_bug() == Some(InjectedBug::NoWatchdog) {
            return;
        }
        let Some(watchdog) = &self.watchdog else {
            return;
        };
        let Ok(mut watchdog) = watchdog.try_lock() else {
            return;
        };
        if let Err(error) = watchdog.round().await {
            let mut world = self.connection().world.lock();
            // What fails now is found again at the next look.
            world.note(|| format!("{}: {error}", Asked::ListDeadlines));
        }
    }
}
