//! The metrics that only the adapter has. The names that `/metrics` shows begin with `concord_`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use concord_domain::resilience::breaker::BreakerState;
use concord_runtime::context::metrics::Metrics;
use concord_wire::AgentId;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};

/// The label of a hosted program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ProgramLabel {
    /// The agent. The label has been called so from the beginning.
    pub(crate) reason: String,
}

/// The label of a hosted agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct AgentLabel {
    pub(crate) agent: String,
}

/// Reads a number of an agent as it is now.
type Read = Box<dyn Fn() -> i64 + Send + Sync>;

/// A gauge of hosted agents that is looked at when the metrics are read: an open breaker becomes half-open when its time is over, though
/// nobody calls the agent, and whoever waits for it gives up by itself.
#[derive(Clone)]
pub(crate) struct Gauges {
    name: &'static str,
    help: &'static str,
    agents: Arc<Mutex<BTreeMap<AgentId, Read>>>,
}

impl Gauges {
    fn new(name: &'static str, help: &'static str) -> Self {
        let agents = Arc::default();
        Self { name, help, agents }
    }

    /// Shows the number of an agent, in place of an earlier one.
    pub(crate) fn show(&self, agent: AgentId, read: impl Fn() -> i64 + Send + Sync + 'static) {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.insert(agent, Box::new(read));
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut described = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        for (agent, read) in agents.iter() {
            let label = AgentLabel {
                agent: agent.to_string(),
            };
            ConstGauge::new(read()).encode(described.encode_family(&label)?)?;
        }
        Ok(())
    }
}

/// The number by which a breaker is shown.
pub(crate) fn standing(breaker: BreakerState) -> i64 {
    match breaker {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    }
}

/// The labels of one call of a hosted agent, or of a message for which it was not called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabels {
    pub(crate) agent: String,
    /// `answered`, or why not, such as `unavailable`, `timeout`, `capacity`; or why it was not called: `breaker_open`, and where it is
    /// behind `queue_full` and `expired`.
    pub(crate) result: &'static str,
}

/// The labels of a request to a provider's budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct BudgetLabels {
    pub(crate) provider: String,
    /// `granted`, `late`, `never` or `away`.
    pub(crate) result: &'static str,
}

/// The labels of a notice to one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct NoticeLabels {
    /// `email`, `webhook` or `callback`.
    pub(crate) channel: &'static str,
    /// `delivered`, `failed` (and tried again), `undeliverable`, `stale`, `nobody` or `off`.
    pub(crate) result: &'static str,
}

/// The labels of one decision about one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WakeLabels {
    /// `wake`, `observe` or `ignore`.
    pub(crate) outcome: &'static str,
    /// The reason without the skill or phrase.
    pub(crate) reason: &'static str,
}

/// The label of a way of matching.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MatchingLabel {
    /// `model`, `server` or `letters`.
    pub(crate) by: &'static str,
}

/// The metrics of hosted agents, activation and notifications. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AdapterMetrics {
    pub(crate) program_starts: Family<ProgramLabel, Counter>,
    pub(crate) hosted_calls: Family<CallLabels, Counter>,
    pub(crate) breakers: Gauges,
    /// How many messages wait for each agent in this process.
    pub(crate) waiting: Gauges,
    pub(crate) budgets: Family<BudgetLabels, Counter>,
    pub(crate) wakes: Family<WakeLabels, Counter>,
    /// 1 for the way in which messages are matched with skills, 0 for the others.
    pub(crate) wake_matching: Family<MatchingLabel, Gauge>,
    pub(crate) notifications: Family<NoticeLabels, Counter>,
}

impl Default for AdapterMetrics {
    fn default() -> Self {
        Self {
            program_starts: Family::default(),
            hosted_calls: Family::default(),
            breakers: Gauges::new(
                "breaker_standing",
                "Circuit breakers of hosted agents: 0 closed, 1 half-open, 2 open.",
            ),
            waiting: Gauges::new(
                "hosted_waiting",
                "Messages that wait for a hosted agent, because it works on others.",
            ),
            budgets: Family::default(),
            wakes: Family::default(),
            wake_matching: Family::default(),
            notifications: Family::default(),
        }
    }
}

impl AdapterMetrics {
    /// Counts what became of a call of a hosted agent, or why it was not called.
    pub(crate) fn count_call(&self, agent: &AgentId, result: &'static str) {
        let agent = agent.to_string();
        let labels = CallLabels { agent, result };
        self.hosted_calls.get_or_create(&labels).inc();
    }

    /// New metrics, which `/metrics` shows beside those of all services.
    pub(crate) fn registered(service: &Metrics) -> Self {
        let metrics = Self::default();
        service.register_own(|registry| {
            registry.register(
                "program_starts",
                "Starts of hosted programs, by agent.",
                metrics.program_starts.clone(),
            );
            registry.register(
                "hosted_calls",
                "Tries of hosted agents, and messages for which they were not tried, by agent and result.",
                metrics.hosted_calls.clone(),
            );
            registry.register_collector(Box::new(metrics.breakers.clone()));
            registry.register_collector(Box::new(metrics.waiting.clone()));
            registry.register(
                "budgets",
                "What was asked of providers' budgets, by result.",
                metrics.budgets.clone(),
            );
            registry.register(
                "wakes",
                "Decisions whom messages wake, by outcome and reason.",
                metrics.wakes.clone(),
            );
            registry.register(
                "wake_matching",
                "What messages are matched with skills by: 1 for that, 0 for what it could be.",
                metrics.wake_matching.clone(),
            );
            registry.register(
                "notifications",
                "Notifications of people, by result.",
                metrics.notifications.clone(),
            );
        });
        metrics
    }
}
