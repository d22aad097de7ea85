//! The metrics that only the adapter has. The names that `/metrics` shows begin with `concord_`.

use concord_runtime::context::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

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
    /// 0 for a closed breaker, 1 for a half-open one, 2 for an open one.
    pub(crate) breaker_standing: Family<AgentLabel, Gauge>,
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
            registry.register(
                "breaker_standing",
                "Circuit breakers of hosted agents: 0 closed, 1 half-open, 2 open.",
                metrics.breaker_standing.clone(),
            );
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
