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

/// Reads the state of a breaker as it is now.
type ReadState = Box<dyn Fn() -> BreakerState + Send + Sync>;

/// The circuit breakers of hosted agents, which are looked at when the metrics are read: an open one becomes half-open when its time is
/// over, though nobody calls the agent.
#[derive(Clone, Default)]
pub(crate) struct Breakers(Arc<Mutex<BTreeMap<AgentId, ReadState>>>);

impl Breakers {
    /// Shows the breaker of an agent, in place of an earlier one.
    pub(crate) fn show(
        &self,
        agent: AgentId,
        read: impl Fn() -> BreakerState + Send + Sync + 'static,
    ) {
        let mut breakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.insert(agent, Box::new(read));
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Breakers")
    }
}

impl Collector for Breakers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut described = encoder.encode_descriptor(
            "breaker_standing",
            "Circuit breakers of hosted agents: 0 closed, 1 half-open, 2 open.",
            None,
            MetricType::Gauge,
        )?;
        let breakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (agent, read) in breakers.iter() {
            let label = AgentLabel {
                agent: agent.to_string(),
            };
            let standing: i64 = match read() {
                BreakerState::Closed => 0,
                BreakerState::HalfOpen => 1,
                BreakerState::Open => 2,
            };
            ConstGauge::new(standing).encode(described.encode_family(&label)?)?;
        }
        Ok(())
    }
}

/// The labels of one call of a hosted agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabels {
    pub(crate) agent: String,
    /// `answered`, or why not, such as `unavailable`, `timeout`, `capacity`, `breaker_open`.
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
#[derive(Debug, Clone, Default)]
pub struct AdapterMetrics {
    pub(crate) program_starts: Family<ProgramLabel, Counter>,
    pub(crate) hosted_calls: Family<CallLabels, Counter>,
    pub(crate) breakers: Breakers,
    pub(crate) budgets: Family<BudgetLabels, Counter>,
    pub(crate) wakes: Family<WakeLabels, Counter>,
    /// 1 for the way in which messages are matched with skills, 0 for the others.
    pub(crate) wake_matching: Family<MatchingLabel, Gauge>,
    pub(crate) notifications: Family<NoticeLabels, Counter>,
}

impl AdapterMetrics {
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
                "Tries of hosted agents, by agent and result.",
                metrics.hosted_calls.clone(),
            );
            registry.register_collector(Box::new(metrics.breakers.clone()));
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
