//! What the handlers of a service share.

pub(crate) mod handled;
pub(crate) mod large_payloads;
pub mod metrics;
pub(crate) mod restrictions;
pub mod trace_context;

use std::sync::Arc;

use concord_domain::{Context, Machine};
use concord_events::AggregateEvent;
use concord_wire::MessageId;
use concord_wire::subject::Service;

use crate::context::handled::Handled;
use crate::context::large_payloads::LargePayloads;
use crate::context::metrics::{Metrics, Reason, StepLabels};
use crate::event_store::cache::Cache;
use crate::event_store::step::Outcome;
use crate::ports::Ports;
use crate::settings::WorkSettings;

/// What the handlers of a service share. Cheap to clone.
#[derive(Clone)]
pub struct ServiceContext<P> {
    /// The service whose handlers these are.
    pub service: Service,
    /// The event store, the publisher, the clock and whatever else handlers need of the world.
    pub ports: P,
    /// The service's metrics.
    pub metrics: Metrics,
    /// Settings of how work is done.
    pub work: Arc<WorkSettings>,
    /// The aggregates that the service has in memory.
    pub cache: Cache,
    /// The room for large payloads that are worked on at once. Contexts of one service share it, but those with room of their own.
    pub(crate) large_payloads: LargePayloads,
    /// What was handled of the consumers for which deadlines wait.
    pub(crate) handled: Handled,
    /// Whether spans are sent to a collector.
    pub(crate) records_spans: bool,
}

impl<P: Ports> ServiceContext<P> {
    /// The context of a service that sends no spans.
    pub fn new(service: Service, ports: P, metrics: Metrics, work: Arc<WorkSettings>) -> Self {
        Self {
            service,
            ports,
            metrics,
            cache: Cache::new(work.cached_bytes_max),
            work,
            large_payloads: LargePayloads::default(),
            handled: Handled::default(),
            records_spans: false,
        }
    }

    /// The same context with room of its own for large payloads. For work that takes long: it would keep the room from everything else.
    #[must_use]
    pub fn with_own_room(self) -> Self {
        Self {
            large_payloads: LargePayloads::default(),
            ..self
        }
    }

    /// The context of a decision that is made now because of a message.
    pub fn of_message(&self, message_id: MessageId) -> Context {
        Context::of_message(self.ports.now(), message_id)
    }

    /// The context of a decision that is made now because of an event.
    pub fn of_event(&self, event_id: MessageId) -> Context {
        Context::of_event(self.ports.now(), event_id)
    }
}

impl<P> ServiceContext<P> {
    /// Counts a step by its outcome.
    pub fn count_step<M: Machine>(&self, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Appended { event, .. } => (*event).into(),
            Outcome::Ignored(reason) => format!("ignored_{}", reason.as_str()).into(),
            Outcome::Rejected(_) => "rejected".into(),
        };
        let aggregate = <M::Event as AggregateEvent>::AGGREGATE.as_str();
        self.metrics
            .steps
            .get_or_create(&StepLabels { aggregate, outcome })
            .inc();
    }

    /// Counts a dead letter, by the reason.
    pub(crate) fn count_dead(&self, reason: &str) {
        self.metrics
            .dead
            .get_or_create(&Reason {
                reason: reason.to_owned(),
            })
            .inc();
    }

    /// Counts a delivery that is no input for any aggregate, by the reason.
    pub fn count_ignored(&self, reason: &str) {
        self.metrics
            .ignored
            .get_or_create(&Reason {
                reason: reason.to_owned(),
            })
            .inc();
    }
}
