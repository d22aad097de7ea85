//! How many messages an agent works on at once, and how many wait: urgent ones first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_domain::resilience::call_policy::{Admission, Queue};
use concord_wire::subject::Lane;
use tokio::sync::oneshot;

/// Why a message was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many wait.
    Full,
    /// Its time was over before its turn came.
    Late,
}

/// Whoever waits is reached by a channel, which is closed when it gives up.
type Waiters = Queue<oneshot::Sender<Seat>>;

/// The way to an agent.
pub(crate) struct Gate(Arc<Mutex<Waiters>>);

/// The right to have the agent work on one message, until it is dropped.
pub(crate) struct Seat(Option<Arc<Mutex<Waiters>>>);

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seat")
    }
}

fn lock(queue: &Mutex<Waiters>) -> MutexGuard<'_, Waiters> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn waits(waiter: &oneshot::Sender<Seat>) -> bool {
    !waiter.is_closed()
}

impl Gate {
    pub(crate) fn new(seats: usize, waiting_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue::new(seats, waiting_max))))
    }

    /// How many are worked on, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let mut queue = lock(&self.0);
        (queue.working(), queue.waiting(waits))
    }

    /// Waits for a seat.
    pub(crate) async fn enter(&self, lane: Lane, within: Duration) -> Result<Seat, Refusal> {
        let turn = {
            let mut queue = lock(&self.0);
            match queue.admit(lane, waits) {
                Admission::Seat => return Ok(Seat(Some(Arc::clone(&self.0)))),
                Admission::Wait => {}
                // Its channel is closed, and it learns by that that there is no room.
                Admission::InPlaceOf(displaced) => drop(displaced),
                Admission::Full => return Err(Refusal::Full),
            }
            let (sender, turn) = oneshot::channel();
            queue.wait(lane, sender);
            turn
        };
        match tokio::time::timeout(within, turn).await {
            Ok(Ok(seat)) => Ok(seat),
            Ok(Err(_displaced)) => Err(Refusal::Full),
            Err(_) => Err(Refusal::Late),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        loop {
            let next = lock(&queue).leave();
            let Some(next) = next else { return };
            match next.send(Seat(Some(Arc::clone(&queue)))) {
                Ok(()) => return,
                // It had given up: the seat is taken back without being dropped, for that would come here again.
                Err(mut seat) => drop(seat.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    async fn wait_for(gate: &Gate, load: (usize, usize)) {
        while gate.load() != load {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn urgent_messages_go_first_and_the_rest_in_order() {
        let gate = Arc::new(Gate::new(1, 10));
        let seat = gate.enter(Lane::Normal, LONG).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (place, (name, lane)) in [
            ("n1", Lane::Normal),
            ("n2", Lane::Normal),
            ("u1", Lane::Urgent),
            ("u2", Lane::Urgent),
        ]
        .into_iter()
        .enumerate()
        {
            let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
            tasks.push(tokio::spawn({
                let gate = Arc::clone(&gate);
                async move {
                    let _seat = gate.enter(lane, LONG).await.unwrap();
                    order.lock().unwrap().push(name);
                }
            }));
            wait_for(&gate, (1, place + 1)).await;
        }
        drop(seat);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["u1", "u2", "n1", "n2"]);
        assert_eq!(gate.load(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn over_the_bound_nobody_waits_but_an_urgent_message_finds_room() {
        let gate = Arc::new(Gate::new(1, 1));
        let seat = gate.enter(Lane::Normal, LONG).await.unwrap();
        let start = |lane| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.enter(lane, LONG).await })
        };
        let normal = start(Lane::Normal);
        wait_for(&gate, (1, 1)).await;
        assert_eq!(
            gate.enter(Lane::Normal, LONG).await.unwrap_err(),
            Refusal::Full
        );
        let urgent = start(Lane::Urgent);
        assert_eq!(
            normal.await.unwrap().unwrap_err(),
            Refusal::Full,
            "displaced"
        );
        assert_eq!(
            gate.enter(Lane::Urgent, LONG).await.unwrap_err(),
            Refusal::Full,
            "only urgent ones wait"
        );
        drop(seat);
        assert!(urgent.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_keeps_neither_seat_nor_place() {
        let gate = Gate::new(1, 1);
        let seat = gate.enter(Lane::Normal, LONG).await.unwrap();
        assert_eq!(
            gate.enter(Lane::Normal, Duration::from_secs(1))
                .await
                .unwrap_err(),
            Refusal::Late
        );
        assert_eq!(gate.load(), (1, 0));
        drop(seat);
        assert_eq!(gate.load(), (0, 0));
        drop(gate.enter(Lane::Urgent, LONG).await.unwrap());
        assert_eq!(gate.load(), (0, 0));
    }
}
