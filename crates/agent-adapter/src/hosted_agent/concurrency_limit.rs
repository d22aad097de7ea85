//! How many messages an agent works on at once, and how many wait for it: alerts first, then those of the highest priority.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_domain::resilience::call_policy::{Admission, Queue, Rank};
use concord_runtime::ports::Clock;
use tokio::sync::oneshot;

use crate::hosted_agent::timing::timeout;

/// Why a message was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionError {
    /// Too many messages wait already.
    Full,
    /// The time of the message was over before it was let in.
    TimedOut,
}

/// The messages that wait. A waiter is reached by a channel, which is closed when it gives up.
type WaitQueue = Queue<oneshot::Sender<Permit>>;

/// The concurrency limit of one agent in this replica.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimit(Arc<Mutex<WaitQueue>>);

/// The right to have the agent work on one message. Given back when dropped.
pub(crate) struct Permit(Option<Arc<Mutex<WaitQueue>>>);

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permit")
    }
}

fn lock(queue: &Mutex<WaitQueue>) -> MutexGuard<'_, WaitQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn still_waits(waiter: &oneshot::Sender<Permit>) -> bool {
    !waiter.is_closed()
}

impl ConcurrencyLimit {
    pub(crate) fn new(permits: usize, waiting_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue::new(permits, waiting_max))))
    }

    /// How many messages are worked on, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let mut queue = lock(&self.0);
        (queue.working(), queue.waiting(still_waits))
    }

    /// Waits for a permit, no longer than `within`.
    pub(crate) async fn acquire<C: Clock>(
        &self,
        clock: &C,
        rank: impl Into<Rank>,
        within: Duration,
    ) -> Result<Permit, AdmissionError> {
        let rank = rank.into();
        let granted = {
            let mut queue = lock(&self.0);
            match queue.admit(rank, still_waits) {
                Admission::Seat => return Ok(Permit(Some(Arc::clone(&self.0)))),
                Admission::Wait => {}
                // Its channel is closed, by which it learns that there is no room for it.
                Admission::InPlaceOf(displaced) => drop(displaced),
                Admission::Full => return Err(AdmissionError::Full),
            }
            let (sender, granted) = oneshot::channel();
            queue.wait(rank, sender);
            granted
        };
        match timeout(clock, within, granted).await {
            Some(Ok(permit)) => Ok(permit),
            Some(Err(_displaced)) => Err(AdmissionError::Full),
            None => Err(AdmissionError::TimedOut),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        loop {
            let next = lock(&queue).leave();
            let Some(next) = next else { return };
            match next.send(Permit(Some(Arc::clone(&queue)))) {
                Ok(()) => return,
                // The waiter had given up. Its permit is taken back without being dropped, because that would come here again.
                Err(mut permit) => drop(permit.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_wire::Priority;

    use super::*;
    use crate::hosted_agent::timing::TokioClock;

    const LONG: Duration = Duration::from_secs(3_600);

    async fn wait_for(limit: &ConcurrencyLimit, load: (usize, usize)) {
        while limit.load() != load {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_highest_priority_goes_first_and_each_in_order() {
        let limit = Arc::new(ConcurrencyLimit::new(1, 10));
        let permit = limit
            .acquire(&TokioClock, Priority::Normal, LONG)
            .await
            .unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (place, (name, priority)) in [
            ("n1", Priority::Normal),
            ("n2", Priority::Normal),
            ("h1", Priority::High),
            ("u1", Priority::Critical),
            ("u2", Priority::Critical),
        ]
        .into_iter()
        .enumerate()
        {
            let (limit, order) = (Arc::clone(&limit), Arc::clone(&order));
            tasks.push(tokio::spawn({
                let limit = Arc::clone(&limit);
                async move {
                    let _permit = limit.acquire(&TokioClock, priority, LONG).await.unwrap();
                    order.lock().unwrap().push(name);
                }
            }));
            wait_for(&limit, (1, place + 1)).await;
        }
        drop(permit);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["u1", "u2", "h1", "n1", "n2"]);
        assert_eq!(limit.load(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn over_the_bound_nobody_waits_but_an_urgent_message_finds_room() {
        let limit = Arc::new(ConcurrencyLimit::new(1, 1));
        let permit = limit
            .acquire(&TokioClock, Priority::Normal, LONG)
            .await
            .unwrap();
        let start = |priority| {
            let limit = Arc::clone(&limit);
            tokio::spawn(async move { limit.acquire(&TokioClock, priority, LONG).await })
        };
        let normal = start(Priority::Normal);
        wait_for(&limit, (1, 1)).await;
        assert_eq!(
            limit
                .acquire(&TokioClock, Priority::Normal, LONG)
                .await
                .unwrap_err(),
            AdmissionError::Full
        );
        let urgent = start(Priority::Critical);
        assert_eq!(
            normal.await.unwrap().unwrap_err(),
            AdmissionError::Full,
            "displaced"
        );
        assert_eq!(
            limit
                .acquire(&TokioClock, Priority::Critical, LONG)
                .await
                .unwrap_err(),
            AdmissionError::Full,
            "only urgent ones wait"
        );
        drop(permit);
        assert!(urgent.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_keeps_neither_permit_nor_place_in_the_queue() {
        let limit = ConcurrencyLimit::new(1, 1);
        let permit = limit
            .acquire(&TokioClock, Priority::Normal, LONG)
            .await
            .unwrap();
        assert_eq!(
            limit
                .acquire(&TokioClock, Priority::Normal, Duration::from_secs(1))
                .await
                .unwrap_err(),
            AdmissionError::TimedOut
        );
        assert_eq!(limit.load(), (1, 0));
        drop(permit);
        assert_eq!(limit.load(), (0, 0));
        drop(
            limit
                .acquire(&TokioClock, Priority::Critical, LONG)
                .await
                .unwrap(),
        );
        assert_eq!(limit.load(), (0, 0));
    }
}
