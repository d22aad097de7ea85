//! Deadlines that the broker has delivered.

use std::sync::Arc;
use std::time::Duration;

use concord_events::{Deadline, FiredBy};
use concord_runtime::delivery::{Ack, Delivery, HandleError, Handler};
use concord_runtime::ports::ArmedDeadline;
use concord_runtime::{Consistency, Ports};
use concord_wire::Timestamp;

use crate::fire::{DeadlineState, Firing};
use crate::schedule::Schedule;

/// How long a deadline waits at most until somebody looks at it again: another process, whose clock is right, may be the
/// next one to.
const WAIT_MAX_MS: u64 = 2_000;
/// How far behind the broker's a clock may be for a deadline that was moved to be waited for.
const BEHIND_MS: u64 = 1_000;

/// What becomes of an open deadline that the broker has delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// It is due.
    Fire,
    /// This clock is behind the broker's: it is looked at again after this time. Armed again it would be due by the
    /// broker's clock, and delivered at once, again and again.
    Wait(Duration),
    /// It was moved while the broker delivered it, which may have swept away the arming of the new one. Or it has waited
    /// for so long that it would be given up: it begins anew.
    Arm,
}

impl Next {
    /// Decides by when the delivered deadline was due and the open one is, and by whether the delivery has tries left.
    fn of(delivered: Timestamp, open: Timestamp, now: Timestamp, has_tries: bool) -> Self {
        let wait_ms = open.millis_since(now);
        if wait_ms == 0 {
            Self::Fire
        } else if (open == delivered && has_tries) || wait_ms <= BEHIND_MS {
            Self::Wait(Duration::from_millis(wait_ms.min(WAIT_MAX_MS)))
        } else {
            Self::Arm
        }
    }
}

/// Fires what is open and due; arms again what has moved; lets go of what has closed.
pub(crate) struct DueHandler<P> {
    pub(crate) firing: Arc<Firing<P>>,
    pub(crate) schedule: Schedule<P>,
}

impl<P: Ports> Handler for DueHandler<P> {
    async fn handle(&self, delivery: &Delivery) -> Result<Ack, HandleError> {
        let armed: ArmedDeadline = serde_json::from_slice(&delivery.payload)?;
        let ArmedDeadline {
            aggregate,
            id,
            name,
            due: delivered,
        } = &armed;
        self.schedule.was_delivered(*aggregate, id, name);
        let tries_max = self.firing.service.work.deliveries_max;
        let has_tries = delivery.deliveries < tries_max;
        // To fire or to wait, any copy of the stream will do: the owner looks again. Thousands may be due at one instant,
        // and what only the leader answers, it answers one after the other. It is asked whether one has closed or moved.
        for consistency in [Consistency::Any, Consistency::Leader] {
            let state = self.firing.state_of(*aggregate, id, name, consistency);
            let (due, trace) = match state.await? {
                DeadlineState::Open { due, trace } => (due, trace),
                DeadlineState::Closed | DeadlineState::Gone => continue,
            };
            let deadline = Deadline {
                name: name.clone(),
                due,
            };
            match Next::of(*delivered, due, self.firing.now(), has_tries) {
                Next::Fire => {
                    let by = FiredBy::Scheduler;
                    let fired = self.firing.fire(*aggregate, id, deadline, by, trace);
                    return fired.await;
                }
                Next::Wait(wait) => return Ok(Ack::Later(wait)),
                Next::Arm if consistency == Consistency::Leader => {
                    self.schedule.arm(*aggregate, id, &deadline).await?;
                }
                Next::Arm => {}
            }
        }
        Ok(Ack::Acknowledge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_armed_again_only_where_it_has_moved() {
        let due = Timestamp::from_unix_millis(1_000_000);
        let wait = |ms| Next::Wait(Duration::from_millis(ms));
        for (behind_ms, same, moved) in [
            (0, Next::Fire, Next::Fire),
            (1, wait(1), wait(1)),
            (1_000, wait(1_000), wait(1_000)),
            (1_001, wait(1_001), Next::Arm),
            (30_000, wait(2_000), Next::Arm),
            (900_000, wait(2_000), Next::Arm),
        ] {
            let now = Timestamp::from_unix_millis(1_000_000 - behind_ms);
            assert_eq!(Next::of(due, due, now, true), same, "{behind_ms}");
            let next = Next::of(due, due, now, false);
            assert_eq!(next, moved, "{behind_ms}, waited for long");
            let earlier = Timestamp::from_unix_millis(1_000_000 - 5_000);
            assert_eq!(Next::of(earlier, due, now, true), moved, "{behind_ms}");
        }
        let later = due.plus_millis(7);
        assert_eq!(Next::of(due, due, later, true), Next::Fire);
    }
}
