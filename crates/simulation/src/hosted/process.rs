//! A process of the adapter: what it does with a message to the agent, in the order of its own `host.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_domain::resilience::breaker::{Breaker, BreakerState};
use concord_domain::resilience::call_policy::{
    Admission, Classification, FailureHandling, Queue, handling,
};
use concord_wire::{ErrorCode, MessageId};

use crate::executor::Life;
use crate::faults::Plant;
use crate::hosted::setup::{Outcome, Setup};
use crate::hosted::world::{
    Cause, Cell, Delivery, Happening, Reply, Request, Said, Shared, What, World,
};
use crate::oneshot::Answer;

/// How long the process waits for the broker's answer.
const PATIENCE_MS: u64 = 5_000;

/// Why the agent gave no answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) verdict: Classification,
    pub(crate) cause: Cause,
    /// How long the endpoint asks to be left alone.
    pub(crate) after: Option<Duration>,
}

impl Failure {
    /// One that has nothing to do with the agent.
    pub(crate) fn here(code: ErrorCode, cause: Cause) -> Self {
        Self {
            verdict: Classification::here(code),
            cause,
            after: None,
        }
    }
}

/// A delivery is to be made again.
struct Again;

/// What a process has in memory, and loses when it dies.
pub(crate) struct Process {
    pub(crate) life: Life,
    pub(crate) world: Shared,
    pub(crate) setup: Arc<Setup>,
    queue: Mutex<Queue<Cell>>,
    breaker: Mutex<Breaker>,
}

/// The right to have the agent work on one message, until it is dropped.
struct Seat<'a>(&'a Process);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        loop {
            let next = self.0.queue().leave();
            // Who has given up does not take it.
            if next.is_none_or(|next| next.settle(Some(Reply::Seat))) {
                return;
            }
        }
    }
}

impl Process {
    pub(crate) fn new(life: Life, world: Shared, setup: Arc<Setup>) -> Self {
        Self {
            life,
            world,
            queue: Mutex::new(Queue::new(setup.instances, setup.queue_max)),
            breaker: Mutex::new(Breaker::new(setup.rules)),
            setup,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Cell>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the breaker stands.
    pub(crate) fn standing(&self) -> BreakerState {
        let now = self.world.lock().clock();
        self.breaker().state(now)
    }

    pub(crate) fn now(&self) -> u64 {
        self.world.lock().now
    }

    /// Handles a delivery, from its arrival to its acknowledgement.
    pub(crate) async fn work(&self, delivery: Delivery) {
        let Delivery {
            sequence,
            deliveries,
            handling,
            ..
        } = delivery;
        let done = self.handle(&delivery).await;
        self.world.lock().end(handling);
        let request = match done {
            Ok(()) => Request::Acknowledge { sequence },
            // The waits of the runtime: from 50 ms, doubled each time.
            Err(Again) => Request::PutBack {
                sequence,
                wait_ms: 25 << deliveries.min(8),
            },
        };
        // When this is lost the delivery comes again, and nobody is told anything twice.
        let _ = self.send(request).await;
    }

    async fn handle(&self, delivery: &Delivery) -> Result<(), Again> {
        let (now, asked) = (self.now(), &delivery.asked);
        let until = asked
            .deadline
            .map_or(now + self.setup.wait_max_ms, |deadline| deadline.max(now));
        let answered = self.answer(delivery, until).await;
        let over = asked.ended_at.is_some_and(|at| at <= self.now());
        let error = match answered {
            Ok(()) if over && self.world.lock().plant != Some(Plant::SaidTooLate) => {
                // For the record of the coordinator, not for who asked.
                self.world.lock().hosted().kept += 1;
                return Ok(());
            }
            Ok(()) => None,
            Err(failure) => match handling(&failure.verdict, delivery.deliveries, over) {
                FailureHandling::Later => return Err(Again),
                FailureHandling::Nothing => return Ok(()),
                FailureHandling::Error => Some((failure.verdict.code, failure.cause)),
            },
        };
        let mut id = MessageId::of_answer(&asked.id, &self.setup.agent);
        if self.world.lock().plant == Some(Plant::AnsweredTwice) {
            id = MessageId::new(format!("{id}-{}-{}", self.life.replica, self.life.number))
                .unwrap_or(id);
        }
        let said = Said {
            sequence: delivery.sequence,
            error,
            sent: self.now(),
            at: 0,
        };
        self.send(Request::Say(id, said))
            .await
            .map(|_| ())
            .ok_or(Again)
    }

    async fn answer(&self, delivery: &Delivery, until: u64) -> Result<(), Failure> {
        // What would be refused when its turn comes need not wait for it.
        self.check()?;
        let _seat = self
            .enter(delivery, until.saturating_sub(self.now()))
            .await?;
        let mut outcome = self.run(delivery, 0, until).await?;
        if outcome == Outcome::Rambled {
            outcome = self.run(delivery, 1, until).await?;
        }
        match outcome {
            Outcome::Said => Ok(()),
            other => Err(Failure::here(
                ErrorCode::InternalError,
                Cause::Called(other),
            )),
        }
    }

    /// Waits for a seat.
    async fn enter(&self, delivery: &Delivery, within_ms: u64) -> Result<Seat<'_>, Failure> {
        let Some(turn) = self.admit(delivery)? else {
            return Ok(Seat(self));
        };
        {
            let mut world = self.world.lock();
            world.plan(within_ms, Happening::GiveUp(turn.clone()));
            world.may_crash(self.life, within_ms);
        }
        match Answer(turn).await {
            Some(Reply::Seat) => Ok(Seat(self)),
            Some(_) => Err(Failure::here(ErrorCode::CapacityExceeded, Cause::Full)),
            None => Err(Failure::here(ErrorCode::Timeout, Cause::Late)),
        }
    }

    /// Lets a message in, or says where it waits for its turn.
    fn admit(&self, delivery: &Delivery) -> Result<Option<Cell>, Failure> {
        let (mut queue, mut world) = (self.queue(), self.world.lock());
        let lane = delivery.asked.lane;
        let admission = queue.admit(lane, Cell::waits);
        let turn = match admission {
            Admission::Seat => None,
            Admission::Full if world.plant != Some(Plant::QueueUnbounded) => {
                self.full(&mut queue, &mut world);
                return Err(Failure::here(ErrorCode::CapacityExceeded, Cause::Full));
            }
            Admission::Wait | Admission::Full => Some(Cell::default()),
            Admission::InPlaceOf(displaced) => {
                displaced.settle(Some(Reply::Displaced));
                world.hosted().displaced += 1;
                Some(Cell::default())
            }
        };
        if let Some(turn) = &turn {
            queue.wait(lane, turn.clone());
        }
        let (working, waiting) = (queue.working(), queue.waiting(Cell::waits));
        world.keep(self.life, What::Load { working, waiting });
        Ok(turn)
    }

    fn full(&self, queue: &mut Queue<Cell>, world: &mut World) {
        let (working, waiting) = (queue.working(), queue.waiting(Cell::waits));
        world.keep(self.life, What::Full { working, waiting });
    }

    /// Asks something of the broker. None when no answer comes.
    async fn send(&self, request: Request) -> Option<Reply> {
        let cell = Cell::default();
        {
            let mut world = self.world.lock();
            let lost = world.faults.lost_request;
            if world.random.chance(lost) {
                world.counts.lost_requests += 1;
            } else {
                let delay = world.delay();
                world.plan(delay, Happening::Arrive(request, cell.clone()));
            }
            let there_and_back = 3 * world.faults.delay_ms_max;
            world.may_crash(self.life, there_and_back);
            world.plan(PATIENCE_MS, Happening::GiveUp(cell.clone()));
        }
        Answer(cell).await
    }

    /// Waits.
    pub(crate) async fn sleep(&self, for_ms: u64) {
        let cell = Cell::default();
        {
            let mut world = self.world.lock();
            world.may_crash(self.life, for_ms);
            world.plan(for_ms, Happening::GiveUp(cell.clone()));
        }
        Answer(cell).await;
    }
}
