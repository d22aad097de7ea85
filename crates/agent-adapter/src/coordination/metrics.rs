//! The metrics of coordination, as `/metrics` shows them.

use concord_domain::coordination_metrics::{Countable, Feedback};
use concord_runtime::context::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The label of a message between agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    /// `lead` where a lead sent or received the message, else `peer`.
    route: &'static str,
}

/// The label of a request of a peer for help.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    /// `asked`, `answered` or `unanswered`.
    result: &'static str,
}

/// The labels of what an agent made of being woken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedbackLabels {
    /// `match` where the message was matched with a skill, `name` where it named the agent in some way.
    by: &'static str,
    /// `accepted`, `declined` or `silent`.
    feedback: &'static str,
}

/// The metrics of coordination. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct CoordinationMetrics {
    agent_messages: Family<RouteLabel, Counter>,
    peer_help_seconds: Histogram,
    peer_help: Family<ResultLabel, Counter>,
    wake_feedback: Family<FeedbackLabels, Counter>,
    collaboration_events: Counter,
    sessions: Counter,
}

impl CoordinationMetrics {
    /// New metrics, which `/metrics` shows beside those of all services.
    pub(super) fn registered(service: &Metrics) -> Self {
        let metrics = Self {
            agent_messages: Family::default(),
            peer_help_seconds: Histogram::new([
                0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
            ]),
            peer_help: Family::default(),
            wake_feedback: Family::default(),
            collaboration_events: Counter::default(),
            sessions: Counter::default(),
        };
        service.register_own(|registry| metrics.register(registry));
        metrics
    }

    fn register(&self, registry: &mut Registry) {
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
            "Countable agents made of being woken.",
            self.wake_feedback.clone(),
        );
        registry.register(
            "collaboration_events",
            "Countable peers did with or for each other.",
            self.collaboration_events.clone(),
        );
        registry.register(
            "sessions",
            "Sessions in which agents said anything.",
            self.sessions.clone(),
        );
    }

    /// Counts one thing.
    pub(super) fn count(&self, what: Countable) {
        match what {
            Countable::Message { through_lead } => {
                let route = if through_lead { "lead" } else { "peer" };
                let label = RouteLabel { route };
                self.agent_messages.get_or_create(&label).inc();
            }
            Countable::Session => {
                self.sessions.inc();
            }
            Countable::Collaboration => {
                self.collaboration_events.inc();
            }
            Countable::Asked => self.count_help("asked"),
            Countable::Unanswered => self.count_help("unanswered"),
            #[allow(clippy::cast_precision_loss)] // Milliseconds, far below 2^52.
            Countable::Helped { after_ms } => {
                self.peer_help_seconds.observe(after_ms as f64 / 1_000.0);
                self.count_help("answered");
            }
            Countable::Woken { .. } => {}
            Countable::Feedback { matched, feedback } => {
                let feedback = match feedback {
                    Feedback::Accepted => "accepted",
                    Feedback::Declined => "declined",
                    Feedback::Silent => "silent",
                };
                let by = if matched { "match" } else { "name" };
                let labels = FeedbackLabels { by, feedback };
                self.wake_feedback.get_or_create(&labels).inc();
            }
        }
    }

    fn count_help(&self, result: &'static str) {
        self.peer_help.get_or_create(&ResultLabel { result }).inc();
    }
}
