//! Noticing, once, that a deadline has passed.

use concord_domain::aggregates::deadline::{DeadlineMachine, Fire};
use concord_events::Aggregate;
use concord_events::{Deadline, EventMeta, FiredBy};
use concord_runtime::delivery::{Ack, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Consistency, Ports, Trace, delivery::handlers};
use concord_wire::MessageId;
use concord_wire::{Timestamp, Token};

/// Where deadlines become events.
pub(crate) struct Firing<P> {
    pub(crate) service: ServiceContext<P>,
    pub(crate) deadlines: Aggregates<DeadlineMachine, P>,
}

/// How a deadline stands in the last event of its aggregate.
pub(crate) enum DeadlineState {
    /// It is open.
    Open {
        /// When it is due.
        due: Timestamp,
        /// The trace context of the event that says so, to go on with.
        trace: Option<Trace>,
    },
    /// It is not open.
    Closed,
    /// The aggregate has no event, or no longer one: it was archived.
    Gone,
}

impl<P: Ports> Firing<P> {
    /// The present.
    pub(crate) fn now(&self) -> Timestamp {
        self.service.ports.now()
    }

    /// How a deadline stands. That one is not open is to be believed on the word of the stream's leader alone.
    pub(crate) async fn state_of(
        &self,
        aggregate: Aggregate,
        id: &Token,
        name: &Token,
        consistency: Consistency,
    ) -> Result<DeadlineState, HandleError> {
        let ports = &self.service.ports;
        let Some(last) = ports.last(aggregate, id, consistency).await? else {
            return Ok(DeadlineState::Gone);
        };
        let meta = EventMeta::decode(&last.payload)?;
        let open = meta
            .deadlines
            .into_iter()
            .find(|deadline| deadline.name == *name);
        Ok(
            open.map_or(DeadlineState::Closed, |deadline| DeadlineState::Open {
                due: deadline.due,
                trace: last.trace,
            }),
        )
    }

    /// Stores that an open deadline has passed. The caller has seen that it is due.
    pub(crate) async fn fire(
        &self,
        aggregate: Aggregate,
        id: &Token,
        deadline: Deadline,
        fired_by: FiredBy,
        trace: Option<Trace>,
    ) -> Result<Ack, HandleError> {
        let now = self.now();
        let lateness_ms = now.millis_since(deadline.due);
        // The cause is the deadline itself, so whoever notices it, and however often, makes the same event.
        let cause = MessageId::of_deadline(id, &deadline.name, deadline.due);
        let fire = Fire {
            aggregate,
            id: id.clone(),
            deadline,
            fired_by,
        };
        let context = self.service.of_message(cause);
        let done = handlers::step(
            &self.service,
            &self.deadlines,
            fire.deadline_id(),
            context,
            &fire,
            trace,
        )
        .await?;
        self.deadlines.forget(&fire.deadline_id());
        #[allow(clippy::cast_precision_loss)] // Seconds for a histogram.
        self.service
            .metrics
            .lateness_seconds
            .observe(lateness_ms as f64 / 1_000.0);
        Ok(done)
    }
}
