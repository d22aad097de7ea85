//! Deadlines that the broker has delivered.

use std::sync::Arc;
use std::time::Duration;

use concord_events::{Deadline, FiredBy};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::ports::ArmedDeadline;
use concord_runtime::{Consistency, Ports};

use crate::fire::{DeadlineState, Firing};
use crate::schedule::Schedule;

/// Fires what is open and due; arms again what has moved; lets go of what has closed.
pub(crate) struct DueHandler<P> {
    pub(crate) firing: Arc<Firing<P>>,
    pub(crate) schedule: Schedule<P>,
}

impl<P: Ports> Handler for DueHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let ArmedDeadline {
            aggregate,
            id,
            name,
            ..
        } = serde_json::from_slice(&delivery.payload)?;
        self.schedule.was_delivered(aggregate, &id, &name);
        // To fire, any copy of the stream will do: the owner looks again. Thousands may be due at one instant, and what
        // only the leader answers, it answers one after the other.
        if let DeadlineState::Open { due, trace } = self
            .firing
            .state_of(aggregate, &id, &name, Consistency::Any)
            .await?
            && self.firing.now() >= due
        {
            return self
                .firing
                .fire(
                    aggregate,
                    &id,
                    Deadline { name, due },
                    FiredBy::Scheduler,
                    trace,
                )
                .await;
        }
        let (due, trace) = match self
            .firing
            .state_of(aggregate, &id, &name, Consistency::Leader)
            .await?
        {
            DeadlineState::Closed | DeadlineState::Gone => return Ok(Ack::Acknowledge),
            DeadlineState::Open { due, trace } => (due, trace),
        };
        let deadline = Deadline { name, due };
        let now = self.firing.now();
        if now >= due {
            return self
                .firing
                .fire(aggregate, &id, deadline, FiredBy::Scheduler, trace)
                .await;
        }
        // This clock is a little behind the broker's: wait. Or the deadline was moved while the broker delivered it,
        // which may have swept away the arming of the new one.
        let wait_ms = due.millis_since(now);
        if wait_ms <= 1_000 {
            return Ok(Ack::Later(Duration::from_millis(wait_ms)));
        }
        self.schedule.arm(aggregate, &id, &deadline).await?;
        Ok(Ack::Acknowledge)
    }
}
