//! What this process knows of the deadlines that the scheduler holds, so that it is told no more than it has to be.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use concord_events::{Aggregate, Deadline};
use concord_runtime::delivery::ErrorChain;
use concord_runtime::event_store::Error;
use concord_runtime::ports::ArmedDeadline;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::{Consistency, Ports};
use concord_wire::{ErrorCode, Fault, Token};
use lru::LruCache;

use crate::fire::{DeadlineState, Firing};

/// How many delivered deadlines are remembered until the event that closes them comes, a moment later. Of one that is
/// forgotten too soon the scheduler is told in vain.
const DELIVERED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);
/// Deadlines that an operator is shown at most.
const LISTED_MAX: usize = 1_000;

type Key = (Aggregate, Token, Token);

/// The scheduler, with what it has delivered to this process.
#[derive(Clone)]
pub(crate) struct Schedule<P> {
    ports: P,
    /// What the scheduler has delivered to this process, and so holds no longer.
    delivered: Arc<Mutex<LruCache<Key, ()>>>,
}

impl<P: Ports> Schedule<P> {
    pub(crate) fn new(ports: &P) -> Self {
        Self {
            ports: ports.clone(),
            delivered: Arc::new(Mutex::new(LruCache::new(DELIVERED_MAX))),
        }
    }

    fn delivered<T>(&self, change: impl FnOnce(&mut LruCache<Key, ()>) -> T) -> T {
        change(
            &mut self
                .delivered
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Remembers that the scheduler has delivered the deadline.
    pub(crate) fn was_delivered(&self, aggregate: Aggregate, id: &Token, name: &Token) {
        self.delivered(|delivered| delivered.put((aggregate, id.clone(), name.clone()), ()));
    }

    /// Has the scheduler deliver the deadline when it is due, in place of an earlier one of the same name.
    pub(crate) async fn arm(
        &self,
        aggregate: Aggregate,
        id: &Token,
        deadline: &Deadline,
    ) -> Result<(), Error> {
        let key = (aggregate, id.clone(), deadline.name.clone());
        self.delivered(|delivered| delivered.pop(&key));
        let armed = ArmedDeadline::new(aggregate, id, deadline);
        self.ports.arm(&armed).await
    }

    /// Has the scheduler hold the deadline no longer. One that is being delivered at this moment is seen through later.
    /// Most deadlines that pass are closed by what follows from that, and the scheduler need not be told of those.
    pub(crate) async fn cancel(
        &self,
        aggregate: Aggregate,
        id: &Token,
        name: &Token,
    ) -> Result<(), Error> {
        let key = (aggregate, id.clone(), name.clone());
        if self.delivered(|delivered| delivered.pop(&key)).is_some() {
            return Ok(());
        }
        self.ports.cancel(aggregate, id, name).await
    }

    /// Answers `armed`: the deadlines that the scheduler holds, up to a thousand, earliest first.
    pub(crate) fn verb(&self, firing: &Arc<Firing<P>>, grace_ms: u64) -> Verb {
        let state = (self.clone(), Arc::clone(firing), grace_ms);
        api::verb(state, |(schedule, firing, grace_ms), _| async move {
            let armed = schedule.still_armed(&firing, grace_ms).await;
            answer(&armed.map_err(|error| failed(&error))?)
        })
    }

    /// What the scheduler holds, without what is left over in it: a broker that was killed may have lost that a deadline was cancelled
    /// or delivered, holds it again, and never delivers it. Such a one is let go. It is worth a look at the events only when somebody looks at
    /// the list, and only after the time in which the scheduler or the watchdog would have fired it.
    async fn still_armed(
        &self,
        firing: &Firing<P>,
        grace_ms: u64,
    ) -> Result<Vec<ArmedDeadline>, Error> {
        let armed = self.ports.armed(LISTED_MAX).await?;
        let now = firing.now();
        let mut still = Vec::with_capacity(armed.len());
        for deadline in armed {
            if now.millis_since(deadline.due) > grace_ms && is_over(firing, &deadline).await {
                let ArmedDeadline {
                    aggregate,
                    id,
                    name,
                    due,
                } = &deadline;
                tracing::info!(%aggregate, %id, %name, %due, "The broker holds a deadline that is over; it is let go.");
                self.ports.cancel(*aggregate, id, name).await?;
            } else {
                still.push(deadline);
            }
        }
        Ok(still)
    }
}

/// Whether the events say that a deadline is over. One whose events cannot be read is not known to be.
async fn is_over<P: Ports>(firing: &Firing<P>, deadline: &ArmedDeadline) -> bool {
    let ArmedDeadline {
        aggregate,
        id,
        name,
        ..
    } = deadline;
    let state = firing.state_of(*aggregate, id, name, Consistency::Leader);
    matches!(state.await, Ok(DeadlineState::Closed | DeadlineState::Gone))
}

fn failed(error: &Error) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!(
            "The armed deadlines could not be listed: {}.",
            ErrorChain(error)
        ),
        "Ask again; `concord doctor` says whether the broker is well.",
    )
}
