//! Running a service: its consumers, tasks and verbs, and whether it is ready.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concord_events::topology::{ConsumerKind, StreamKind};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{Admission, Priority};
use crate::broker::Broker;
use crate::broker::provision::PullConsumer;
use crate::context::restrictions::Restrictions;
use crate::delivery::Handler;
use crate::service::hand_off::Takers;
use crate::service::health::Readiness;
use crate::service::owned::Answerers;
use crate::service::reading::ArchivedCases;
use crate::service::{Replicas, ServiceContext, api};
use crate::{Directory, NatsPorts, service::poison, service::worker};

/// What runs a service: its consumers, its tasks, its API and what it says of its readiness. Cheap to clone.
#[derive(Clone)]
pub struct ServiceRunner {
    context: ServiceContext<NatsPorts>,
    /// The connection to the broker.
    pub broker: Broker,
    /// Cancelled when the service is to stop.
    pub stop: CancellationToken,
    pub(crate) admission: Arc<Admission>,
    tasks: TaskTracker,
    consumers: Arc<Mutex<Bindings>>,
    verbs: Arc<Mutex<Vec<(&'static str, api::Verb)>>>,
    ready_lag_max: u64,
    restrictions: Arc<Restrictions>,
    /// The replicas of this service.
    pub replicas: Arc<Replicas>,
    pub(crate) takers: Takers,
    pub(crate) answerers: Answerers,
    /// What is archived, for all verbs that read of it.
    pub(crate) archived: ArchivedCases,
}

/// So many messages wait in a consumer that another replica is needed, however busy this one is: the least by which the chart scales, so that
/// what it adds has work.
const BEHIND: i64 = 200;

#[derive(Default)]
struct Bindings {
    expected: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl ServiceRunner {
    /// Runs nothing yet.
    pub(crate) fn new(
        context: ServiceContext<NatsPorts>,
        ready_lag_max: u64,
        stop: CancellationToken,
    ) -> Self {
        let restrictions = Arc::<Restrictions>::default();
        let replicas = Arc::new(Replicas::new(&context));
        let admission = Admission::new(&context.work, Arc::clone(&restrictions), stop.clone());
        Self {
            archived: ArchivedCases::new(context.ports.broker.clone()),
            broker: context.ports.broker.clone(),
            context,
            stop,
            admission: Arc::new(admission),
            tasks: TaskTracker::new(),
            consumers: Arc::default(),
            verbs: Arc::default(),
            ready_lag_max,
            restrictions,
            replicas,
            takers: Takers::default(),
            answerers: Answerers::default(),
        }
    }

    /// What the service's handlers share.
    pub fn context(&self) -> &ServiceContext<NatsPorts> {
        &self.context
    }

    /// Waits until the service's tasks have ended.
    pub(crate) async fn wait_for_tasks(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Says that the service is going to consume these as soon as it can. Until then it is not ready.
    pub fn expect(&self, kind: ConsumerKind) {
        let names = self.broker.layout.consumers_of(kind).into_iter();
        let names = names.map(|definition| definition.name);
        self.bindings(|bindings| bindings.expected.extend(names));
    }

    /// Runs `handler` on any consumer until the service stops, with so many deliveries under way at once: for handlers that mostly wait.
    pub fn consume_many_from<H: Handler>(
        &self,
        consumer: (String, String, String),
        in_flight_max: usize,
        handler: H,
    ) {
        let consumers = [(consumer, Priority::Independent)];
        self.run_consumers(None, consumers, in_flight_max, handler);
    }

    pub(super) fn run_consumers<H: Handler>(
        &self,
        kind: Option<ConsumerKind>,
        consumers: impl IntoIterator<Item = ((String, String, String), Priority)>,
        in_flight_max: usize,
        handler: H,
    ) {
        let in_flight_max = in_flight_max.max(1);
        let (handler, permits) = (Arc::new(handler), Arc::new(Semaphore::new(in_flight_max)));
        let ack_wait = Duration::from_millis(self.work.ack_wait_ms);
        for ((stream, name, filter), priority) in consumers {
            self.bindings(|bindings| bindings.expected.insert(name.clone()));
            let consumer = PullConsumer {
                stream,
                name,
                filter,
                ack_wait,
                in_flight_max,
            };
            if poison::concerns(self, &consumer) {
                self.tasks
                    .spawn(poison::watch(self.clone(), consumer.clone()));
            }
            let (handler, permits) = (Arc::clone(&handler), Arc::clone(&permits));
            self.tasks.spawn(worker::run(
                self.clone(),
                (kind, consumer),
                priority,
                handler,
                permits,
            ));
        }
    }

    /// From now on the service knows who is registered.
    pub(crate) fn knows(&self, directory: Arc<Directory>) {
        self.admission
            .know_registered(Box::new(move || directory.names()));
    }

    /// Waits while thousands of deadlines are due, for work that can wait for them, but no longer than a second.
    pub async fn give_way(&self) {
        self.admission.give_way().await;
    }

    /// Runs something else until it ends; the service waits for it before it stops.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Answers a verb of the service's API. To be called before the service has started.
    pub fn answer(&self, verb: &'static str, handler: api::Verb) {
        self.verbs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((verb, handler));
    }

    pub(crate) fn take_verbs(&self) -> Vec<(&'static str, api::Verb)> {
        std::mem::take(&mut *self.verbs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn bound(&self, consumer: &str) {
        self.bindings(|bindings| bindings.bound.insert(consumer.to_owned()));
    }

    pub(crate) fn is_bound(&self, consumer: &str) -> bool {
        self.bindings(|bindings| bindings.bound.contains(consumer))
    }

    fn bindings<T>(&self, change: impl FnOnce(&mut Bindings) -> T) -> T {
        change(
            &mut self
                .consumers
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Whether more waits in a consumer than a replica should leave waiting.
    pub(crate) fn is_behind(&self) -> bool {
        let expected = self.bindings(|bindings| bindings.expected.clone());
        expected.iter().any(|consumer| {
            self.metrics.lag_of(consumer).get() >= BEHIND && !self.restrictions.concern(consumer)
        })
    }

    /// Whether the service can do its work.
    pub fn readiness(&self) -> Readiness {
        let mut reasons = Vec::new();
        if self.metrics.broker_up.get() == 0 || !self.broker.is_connected() {
            reasons.push("the broker does not answer".to_owned());
        }
        if self.broker.hears_since().is_none() {
            reasons.push("agents and people are not heard: their connection is lost".to_owned());
        }
        let missing = self.broker.refusals.missing();
        reasons.extend(missing.into_iter().map(|stream| {
            let stream = self.broker.layout.stream_name(stream);
            format!("the stream {stream} is missing: start all services again; the first makes it")
        }));
        // Without room for letters everything else goes on.
        let refused = self.broker.refusals.now().into_iter();
        let (letters, refused): (Vec<_>, Vec<_>) =
            refused.partition(|(stream, _)| *stream == StreamKind::Dead);
        let unstored = |(stream, why): (StreamKind, String)| {
            let stream = self.broker.layout.stream_name(stream);
            format!("the broker does not store in {stream}: {why}")
        };
        reasons.extend(refused.into_iter().map(unstored));
        reasons.extend(self.missing_right());
        let (unbound, expected) = self.bindings(|bindings| {
            let unbound: Vec<String> = bindings
                .expected
                .difference(&bindings.bound)
                .cloned()
                .collect();
            (unbound, bindings.expected.clone())
        });
        reasons.extend(
            unbound
                .into_iter()
                .map(|name| format!("the consumer {name} is not bound yet")),
        );
        let mut notes = self.restrictions.texts();
        notes.extend(letters.into_iter().map(unstored));
        notes.extend(expected.iter().filter_map(|name| self.backlog_of(name)));
        Readiness {
            ready: reasons.is_empty(),
            reasons,
            notes,
        }
    }

    /// What the broker says where it lets this process store no event of its own, or not say that it is there: as with the credentials of
    /// another service.
    fn missing_right(&self) -> Option<String> {
        let beat = self.replicas.beat_subject(&self.broker);
        let layout = &self.broker.layout;
        let said = self.broker.denials.of_publishing(|subject| {
            subject == beat || layout.stream_of(subject) == Some(StreamKind::Events)
        });
        said.map(|said| format!("the broker does not give the rights that are needed: {said}"))
    }

    /// Says how much waits in a consumer, where that is much. A flood that is read past is noted by itself, and nobody waits for its end.
    fn backlog_of(&self, consumer: &str) -> Option<String> {
        let lag = self.metrics.lag_of(consumer).get();
        let is_much = u64::try_from(lag).unwrap_or(0) > self.ready_lag_max;
        (is_much && !self.restrictions.concern(consumer))
            .then(|| format!("{lag} messages wait in the consumer {consumer}"))
    }

    /// Says in the readiness what is restricted of the service, or that nothing is any more; `about` is a consumer of it or
    /// another word for what is restricted.
    pub fn note(&self, about: &str, restriction: Option<String>) {
        self.restrictions.set(about, restriction);
    }

    /// What was noted about this; none where nothing is.
    pub(crate) fn noted(&self, about: &str) -> Option<String> {
        self.restrictions.of(about)
    }
}

/// Whoever runs a service has all that its handlers have.
impl Deref for ServiceRunner {
    type Target = ServiceContext<NatsPorts>;

    fn deref(&self) -> &Self::Target {
        self.context()
    }
}
