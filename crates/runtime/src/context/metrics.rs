//! What a service counts, in the Prometheus text format under `/metrics`.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

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
    /// The stored fact, or `ignored_...`, or `rejected`.
    pub outcome: std::borrow::Cow<'static, str>,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Consumer {
    /// The consumer.
    pub consumer: String,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    /// Why.
    pub reason: String,
}

/// Labels of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NoticeLabels {
    /// The channel: `email` or `webhook`.
    pub channel: &'static str,
    /// What became of it: `delivered`, `failed` (and tried again), `undeliverable`, `stale`, `nobody`, `off`.
    pub result: &'static str,
}

/// Labels of a decision whom a message wakes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WakeLabels {
    /// What the agent does: `wake`, `observe` or `ignore`.
    pub outcome: &'static str,
    /// Why, without the skill or phrase.
    pub reason: &'static str,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct MatchingLabel {
    /// What messages are matched with skills by: `model`, `server` or `letters`.
    pub by: &'static str,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabel {
    /// Which way a message between agents took: `lead` or `peer`.
    pub route: &'static str,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabel {
    /// What came of it.
    pub result: &'static str,
}

/// Labels of what an agent made of being woken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct FeedbackLabels {
    /// Why it was woken: by a `match`, or because the message `name`s it in some way.
    pub by: &'static str,
    /// What it made of it: `accepted`, `declined` or `silent`.
    pub feedback: &'static str,
}

/// Labels of a call of a hosted agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// The agent.
    pub agent: String,
    /// What became of it: `answered`, or the reason why not, as `unavailable`, `timeout`, `capacity`, `breaker_open`.
    pub result: &'static str,
}

/// Labels of a provider's budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BudgetLabels {
    /// The provider.
    pub provider: String,
    /// What became of a wish: `granted`, `late`, `never`, `away`.
    pub result: &'static str,
}

/// One label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AgentLabel {
    /// The agent.
    pub agent: String,
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
    /// Messages published because of facts.
    pub effects: Counter,
    /// Messages and facts given up, by reason.
    pub dead: Family<Reason, Counter>,
    /// Messages that were no input, by reason; unknown types among them.
    pub ignored: Family<Reason, Counter>,
    /// What stood among facts or deadlines and was written by no service, by consumer.
    pub foreign: Family<Consumer, Counter>,
    /// Messages over their senders' limit, by consumer.
    pub rate_limited: Family<Consumer, Counter>,
    /// Pauses in reading a consumer because a sender floods.
    pub held_back: Counter,
    /// Messages waiting in each consumer.
    pub lag: Family<Consumer, Gauge>,
    /// Whether the broker answers: 1 or 0.
    pub broker_up: Gauge,
    /// How late deadlines were noticed, in seconds.
    pub lateness_seconds: Histogram,
    /// Deadlines that the watchdog had to fire.
    pub watchdog_fired: Counter,
    /// Deadlines this process knows to be open.
    pub deadlines_open: Gauge,
    /// Sum of seconds spent starting programs again after they ended or hung, as a count of starts.
    pub program_starts: Family<Reason, Counter<u64, AtomicU64>>,
    /// Calls of hosted agents, each try counted, by agent and result.
    pub hosted_calls: Family<CallLabels, Counter>,
    /// How hosted agents' circuit breakers stand: 0 closed, 1 half-open, 2 open.
    pub breaker_standing: Family<AgentLabel, Gauge>,
    /// What was asked of the providers' budgets, by result.
    pub budgets: Family<BudgetLabels, Counter>,
    /// Notifications of people, by channel and result.
    pub notifications: Family<NoticeLabels, Counter>,
    /// Decisions whom messages wake, by what the agent does and why.
    pub wakes: Family<WakeLabels, Counter>,
    /// Which way messages are matched with skills: 1 for that, 0 for the others.
    pub wake_matching: Family<MatchingLabel, Gauge>,
    /// Messages between agents, by whether a lead sent or received them.
    pub agent_messages: Family<RouteLabel, Counter>,
    /// How long peers waited for the first answer when they asked for help, in seconds.
    pub peer_help_seconds: Histogram,
    /// Requests of peers for help, by what came of them.
    pub peer_help: Family<ResultLabel, Counter>,
    /// What agents made of being woken.
    pub wake_feedback: Family<FeedbackLabels, Counter>,
    /// What peers did with or for each other.
    pub collaboration_events: Counter,
    /// Sessions in which agents said anything.
    pub sessions: Counter,
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
            lag: Family::default(),
            broker_up: Gauge::default(),
            lateness_seconds: Histogram::new(seconds),
            watchdog_fired: Counter::default(),
            deadlines_open: Gauge::default(),
            program_starts: Family::default(),
            hosted_calls: Family::default(),
            breaker_standing: Family::default(),
            budgets: Family::default(),
            notifications: Family::default(),
            wakes: Family::default(),
            wake_matching: Family::default(),
            agent_messages: Family::default(),
            peer_help_seconds: Histogram::new([
                0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
            ]),
            peer_help: Family::default(),
            wake_feedback: Family::default(),
            collaboration_events: Counter::default(),
            sessions: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
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
            "Messages published because of facts.",
            self.effects.clone(),
        );
        registry.register(
            "dead",
            "Messages and facts given up, by reason.",
            self.dead.clone(),
        );
        registry.register(
            "ignored",
            "Messages that were no input, by reason.",
            self.ignored.clone(),
        );
        registry.register(
            "foreign",
            "What stood among facts and was none, passed over.",
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
            "deadlines_open",
            "Deadlines known to be open.",
            self.deadlines_open.clone(),
        );
        registry.register(
            "program_starts",
            "Starts of hosted programs, by agent.",
            self.program_starts.clone(),
        );
        registry.register(
            "hosted_calls",
            "Tries of hosted agents, by agent and result.",
            self.hosted_calls.clone(),
        );
        registry.register(
            "breaker_standing",
            "Circuit breakers of hosted agents: 0 closed, 1 half-open, 2 open.",
            self.breaker_standing.clone(),
        );
        registry.register(
            "budgets",
            "What was asked of providers' budgets, by result.",
            self.budgets.clone(),
        );
        registry.register(
            "wakes",
            "Decisions whom messages wake, by outcome and reason.",
            self.wakes.clone(),
        );
        registry.register(
            "wake_matching",
            "What messages are matched with skills by: 1 for that, 0 for what it could be.",
            self.wake_matching.clone(),
        );
        registry.register(
            "notifications",
            "Notifications of people, by result.",
            self.notifications.clone(),
        );
        self.register_coordination(registry);
    }

    fn register_coordination(&self, registry: &mut Registry) {
        registry.register(
            "agent_messages",
            "Messages between agents, by route.",
            self.agent_messages.clone(),
        );
        registry.register(
            "peer_help_seconds",
            "How long peers waited for the first answer when they asked for help.",
            self.peer_help_seconds.clone(),
        );
        registry.register(
            "peer_help",
            "Requests of peers for help, by what came of them.",
            self.peer_help.clone(),
        );
        registry.register(
            "wake_feedback",
            "What agents made of being woken.",
            self.wake_feedback.clone(),
        );
        registry.register(
            "collaboration_events",
            "What peers did with or for each other.",
            self.collaboration_events.clone(),
        );
        registry.register(
            "sessions",
            "Sessions in which agents said anything.",
            self.sessions.clone(),
        );
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
