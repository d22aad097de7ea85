//! What a service counts, in the Prometheus text format under `/metrics`.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::event_store::step::StepCounters;

/// Labels of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DeliveryLabels {
    /// The consumer.
    pub consumer: std::sync::Arc<str>,
    /// What became of it: `acked`, `postponed`, `refused`, `limited`, `failed`, `dead`.
    pub verdict: &'static str,
}

/// Labels of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StepLabels {
    /// Kind of aggregate.
    pub aggregate: &'static str,
    /// The stored event, or `ignored_...`, or `rejected`.
    pub outcome: std::borrow::Cow<'static, str>,
}

/// The consumer that a number is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Consumer {
    /// The consumer.
    pub consumer: String,
}

/// The stream that a number is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Stream {
    /// The stream.
    pub stream: String,
}

/// The broker of a cluster that a number is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Node {
    /// The broker's name.
    pub node: String,
}

/// The reason that a number is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    /// The reason, in one word.
    pub reason: String,
}

/// A service's metrics. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: std::sync::Arc<std::sync::Mutex<Registry>>,
    /// Deliveries by consumer and verdict.
    pub deliveries: Family<DeliveryLabels, Counter>,
    /// Steps by aggregate and outcome.
    pub steps: Family<StepLabels, Counter>,
    /// How long one delivery took, in seconds.
    pub handling_seconds: Histogram,
    /// Messages published because of events.
    pub effects: Counter,
    /// Messages and events given up, by reason.
    pub dead: Family<Reason, Counter>,
    /// Messages that were no input, by reason; unknown types among them.
    pub ignored: Family<Reason, Counter>,
    /// What stood among events or deadlines and was written by no service, by consumer.
    pub foreign: Family<Consumer, Counter>,
    /// Messages over their senders' limit, by consumer.
    pub rate_limited: Family<Consumer, Counter>,
    /// Pauses in reading a consumer because a sender floods.
    pub held_back: Counter,
    /// Deliveries that were handed to another replica.
    pub handed_off: Counter,
    /// Steps that another replica has done for this one.
    pub steps_asked: Counter,
    /// Whether this replica works: 1, or 0 where it stands by.
    pub working: Gauge,
    /// Messages waiting in each consumer.
    pub lag: Family<Consumer, Gauge>,
    /// Whether the broker answers: 1 or 0.
    pub broker_up: Gauge,
    /// How full each stream with a limit is, from 0 to 1.
    pub stream_fill: Family<Stream, Gauge<f64, AtomicU64>>,
    /// Whether the broker has refused of late to store in a stream what this process gave it: 1 or 0.
    pub stream_refuses: Family<Stream, Gauge>,
    /// How many copies of streams on each broker of a cluster are lost to the others.
    pub copies_lost: Family<Node, Gauge>,
    /// How late deadlines were noticed, in seconds.
    pub lateness_seconds: Histogram,
    /// Deadlines that the watchdog had to fire.
    pub watchdog_fired: Counter,
    /// Deadlines that were applied although what was stored before them was not read.
    pub deadlines_unread: Counter,
    /// Deadlines this process knows to be open.
    pub deadlines_open: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = [
            0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
            30.0,
        ];
        let metrics = Self {
            registry: std::sync::Arc::default(),
            deliveries: Family::default(),
            steps: Family::default(),
            handling_seconds: Histogram::new(seconds),
            effects: Counter::default(),
            dead: Family::default(),
            ignored: Family::default(),
            foreign: Family::default(),
            rate_limited: Family::default(),
            held_back: Counter::default(),
            handed_off: Counter::default(),
            steps_asked: Counter::default(),
            working: Gauge::default(),
            lag: Family::default(),
            broker_up: Gauge::default(),
            stream_fill: Family::default(),
            stream_refuses: Family::default(),
            copies_lost: Family::default(),
            lateness_seconds: Histogram::new(seconds),
            watchdog_fired: Counter::default(),
            deadlines_unread: Counter::default(),
            deadlines_open: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    /// The metrics of a process whose steps count in `counters`.
    pub fn with_steps(counters: &StepCounters) -> Self {
        let metrics = Self::default();
        metrics.register_own(|registry| {
            registry.register(
                "step_conflicts",
                "Appends that were not stored because another process was first.",
                counters.conflicts.clone(),
            );
            registry.register(
                "step_reloads",
                "Reads of an aggregate from the broker by steps.",
                counters.reloads.clone(),
            );
        });
        metrics
    }

    /// How many messages wait in a consumer, as this process has heard last.
    pub fn lag_of(&self, consumer: &str) -> Gauge {
        let consumer = consumer.to_owned();
        self.lag.get_or_create(&Consumer { consumer }).clone()
    }

    fn register(&self) {
        let mut guard = self
            .registry
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let registry = guard.sub_registry_with_prefix("concord");
        registry.register(
            "deliveries",
            "Deliveries by consumer and verdict.",
            self.deliveries.clone(),
        );
        registry.register(
            "steps",
            "Steps by aggregate and outcome.",
            self.steps.clone(),
        );
        registry.register(
            "handling_seconds",
            "How long one delivery took.",
            self.handling_seconds.clone(),
        );
        registry.register(
            "effects",
            "Messages published because of events.",
            self.effects.clone(),
        );
        registry.register(
            "dead",
            "Messages and events given up, by reason; `late` where a message came too late, `unkept` where a letter had no room.",
            self.dead.clone(),
        );
        registry.register(
            "ignored",
            "Messages that were no input, by reason.",
            self.ignored.clone(),
        );
        registry.register(
            "foreign",
            "What stood among events and was none, passed over.",
            self.foreign.clone(),
        );
        registry.register(
            "rate_limited",
            "Messages over their senders' limit.",
            self.rate_limited.clone(),
        );
        registry.register(
            "held_back",
            "Pauses in reading because a sender floods.",
            self.held_back.clone(),
        );
        registry.register(
            "consumer_lag",
            "Messages waiting in each consumer.",
            self.lag.clone(),
        );
        registry.register(
            "broker_up",
            "Whether the broker answers.",
            self.broker_up.clone(),
        );
        self.register_replicas(registry);
        self.register_storage(registry);
        self.register_deadlines(registry);
    }

    fn register_replicas(&self, registry: &mut Registry) {
        registry.register(
            "handed_off",
            "Deliveries that were handed to another replica of the service.",
            self.handed_off.clone(),
        );
        registry.register(
            "steps_asked",
            "Steps on an aggregate that belongs to another replica of the service, which has done them.",
            self.steps_asked.clone(),
        );
        registry.register(
            "working",
            "Whether this replica of the service works: 1, or 0 where it stands by.",
            self.working.clone(),
        );
    }

    fn register_storage(&self, registry: &mut Registry) {
        registry.register(
            "stream_fill_ratio",
            "How full each stream with a limit is.",
            self.stream_fill.clone(),
        );
        registry.register(
            "stream_refuses",
            "Whether the broker has refused of late to store in a stream.",
            self.stream_refuses.clone(),
        );
        registry.register(
            "stream_copies_lost",
            "How many copies of streams on a broker of a cluster are lost to the others.",
            self.copies_lost.clone(),
        );
    }

    fn register_deadlines(&self, registry: &mut Registry) {
        registry.register(
            "deadline_lateness_seconds",
            "How late deadlines were noticed.",
            self.lateness_seconds.clone(),
        );
        registry.register(
            "watchdog_fired",
            "Deadlines that the watchdog had to fire.",
            self.watchdog_fired.clone(),
        );
        registry.register(
            "deadlines_unread",
            "Deadlines that were applied although what was stored before them was not read.",
            self.deadlines_unread.clone(),
        );
        registry.register(
            "deadlines_open",
            "Deadlines known to be open.",
            self.deadlines_open.clone(),
        );
    }

    /// Registers the metrics that only one service has, under the same prefix as those of all services.
    pub fn register_own(&self, register: impl FnOnce(&mut Registry)) {
        let mut guard = self
            .registry
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        register(guard.sub_registry_with_prefix("concord"));
    }

    /// Everything in the text format.
    pub fn text(&self) -> String {
        let registry = self
            .registry
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# the metrics could not be written: {error}\n"),
        }
    }
}
