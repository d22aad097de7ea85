//! Deadlines that the broker has delivered.

use std::sync::Arc;
use std::time::Duration;

use concord_protocol::event::{Deadline, FiredBy};
use concord_runtime::clock;
use concord_runtime::consume::{Delivery, Done, Handler, Problem};

use crate::fire::{Firing, Standing};
use crate::schedule::{Armed, Schedule};

/// Fires what is open and due; arms again what has moved; lets go of what has closed.
pub(crate) struct Due {
    pub(crate) firing: Arc<Firing>,
    pub(crate) schedule: Schedule,
}

impl Handler for Due {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        let Armed { aggregate, id, name, .. } = serde_json::from_slice(&delivery.payload)?;
        let due = match self.firing.standing(aggregate, &id, &name).await? {
            Standing::Closed => return Ok(Done::Acknowledge),
            Standing::Open(due) => due,
        };
        let deadline = Deadline { name, due };
        let now = clock::now();
        if now >= due {
            return self.firing.fire(aggregate, &id, deadline, FiredBy::Scheduler).await;
        }
        // This clock is a little behind the broker's: wait. Or the deadline was moved while the broker delivered it,
        // which may have swept away the arming of the new one.
        let wait_ms = due.millis_since(now);
        if wait_ms <= 1_000 {
            return Ok(Done::Later(Duration::from_millis(wait_ms)));
        }
        self.schedule.arm(aggregate, &id, &deadline).await?;
        Ok(Done::Acknowledge)
    }
}
