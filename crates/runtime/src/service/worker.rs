//! Working on the deliveries of a consumer: bounded in number, each handled on its own task, acknowledged when done, put
//! back when it failed, and kept as a dead letter when it fails again and again. Survives the loss of the broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::AckKind;
use async_nats::{Message, Subject};
use concord_events::topology::ConsumerKind;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::admission::{BypassReader, Gate, Intake, Priority, Verdict};
use crate::broker::delivery_info::DeliveryInfo;
use crate::broker::provision::PullConsumer;
use crate::broker::pull::{self, Pull, Taken};
use crate::broker::pull_room::Room;
use crate::broker::{Broker, timestamp, trace_of};
use crate::context::metrics::DeliveryLabels;
use crate::delivery::settle::{Settlement, settle};
use crate::delivery::{Cost, Delivery, Handler};
use crate::error_chain::ErrorChain;
use crate::service::hand_off::{self, Again, Taker};
use crate::service::{ServiceRunner, poison};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Pulling is tried again after so long when it failed, doubled with each failure up to the longest wait.
const WAIT_FIRST: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);
/// When pulling went well for so long, the next failure is taken for a first one.
const GOOD_MIN: Duration = Duration::from_secs(10);

/// Pulls from `consumer` until the service stops, whenever this replica is one of those that do; then finishes what is under way. `permits`
/// bounds how many deliveries are worked on at once.
pub(crate) async fn run<H: Handler>(
    runner: ServiceRunner,
    (kind, consumer): (Option<ConsumerKind>, PullConsumer),
    priority: Priority,
    handler: Arc<H>,
    permits: Arc<Semaphore>,
) {
    let layout = &runner.broker.layout;
    let named = (kind, consumer.name.as_str());
    let gate = Gate::new(&runner.admission, layout, named, priority, permits);
    let tasks = TaskTracker::new();
    let worker = |kind, gate, lag| {
        let worker = Worker {
            runner: runner.clone(),
            kind,
            // Both paths have one name: a delivery that is read on both is refused under one id and counted once.
            consumer: consumer.name.as_str().into(),
            gate,
            lag,
            handler: Arc::clone(&handler),
        };
        Pulling {
            worker: Arc::new(worker),
            tasks: tasks.clone(),
        }
    };
    let past_backlog = gate.past_backlog(consumer.in_flight_max);
    let lag = runner.metrics.lag_of(&consumer.name);
    let reader = BypassReader::new(&runner.broker, &gate, &consumer, &lag);
    if let (Some(past_backlog), Some(reader)) = (past_backlog, reader) {
        let watch = poison::watch(runner.clone(), reader.consumer().clone());
        tasks.spawn(watch);
        // What is read past a backlog is not handed over: only here it is known that it was.
        tasks.spawn(reader.run(worker(None, past_backlog, None)));
    }
    let pulling = worker(kind, gate, Some(lag));
    if kind.is_some() {
        let taker = Pulling {
            worker: Arc::clone(&pulling.worker),
            tasks: tasks.clone(),
        };
        runner.takers.add(&consumer.name, Arc::new(taker));
    }
    pull_until_stopped(&pulling, &consumer).await;
    tasks.close();
    tasks.wait().await;
}

async fn pull_until_stopped<H: Handler>(pulling: &Pulling<H>, consumer: &PullConsumer) {
    let stop = &pulling.worker.runner.stop;
    let mut wait = WAIT_FIRST;
    while !stop.is_cancelled() {
        let started = Instant::now();
        if let Err(error) = pulling.pull(consumer).await {
            tracing::warn!(consumer = %consumer.name, error = %ErrorChain(&*error), "Pulling failed; starting again.");
            if started.elapsed() > GOOD_MIN {
                wait = WAIT_FIRST;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(WAIT_MAX),
                () = stop.cancelled() => {}
            }
        }
    }
}

/// What handles single deliveries; every task holds it.
struct Worker<H> {
    runner: ServiceRunner,
    /// None for a consumer whose deliveries do not go together.
    kind: Option<ConsumerKind>,
    consumer: Arc<str>,
    gate: Gate,
    /// How many messages wait in the consumer. None for what is read past a backlog: of that another number is told.
    lag: Option<Gauge>,
    handler: Arc<H>,
}

/// Deliveries of one consumer, as they come.
struct Pulling<H> {
    worker: Arc<Worker<H>>,
    tasks: TaskTracker,
}

impl<H: Handler> Intake for Pulling<H> {
    /// Has a delivery handled when its turn comes. Meanwhile the broker is told that it is being worked on: while a process
    /// is slow the others would be given all that waits in it as well, and nobody would be slow alone.
    async fn start(&self, Taken { message, place }: Taken) {
        let Worker {
            runner,
            consumer,
            gate,
            lag,
            ..
        } = &*self.worker;
        let Some(mut arrived) = Arrived::new(consumer, message) else {
            tracing::error!(
                "A delivery without its stream's description was left to be delivered again."
            );
            return;
        };
        if let Some(lag) = lag {
            lag.set(i64::try_from(arrived.waiting).unwrap_or(i64::MAX));
        }
        let verdict = gate.admit(runner.context(), &mut arrived.delivery, arrived.waiting);
        if let Verdict::Skipped(label) = verdict {
            // Here and at once, so that a flood is over as fast as it can be read, whatever is under way.
            finish(runner, arrived, (Settlement::Acknowledge, label)).await;
            return;
        }
        let worker = Arc::clone(&self.worker);
        self.tasks.spawn(async move {
            // Boxed, because a task that holds all of it is moved several times on its way to the scheduler and back.
            Box::pin(hand_off_or_handle(&worker, arrived, verdict)).await;
            drop(place);
        });
    }
}

impl<H: Handler> Taker for Pulling<H> {
    fn take(&self, message: Message, permit: OwnedSemaphorePermit) {
        let Some(mut arrived) = Arrived::new(&self.worker.consumer, message) else {
            return;
        };
        let worker = Arc::clone(&self.worker);
        self.tasks.spawn(async move {
            let Arrived {
                delivery, waiting, ..
            } = &mut arrived;
            let context = worker.runner.context();
            let verdict = worker.gate.take_over(context, delivery, *waiting);
            Box::pin(handle_one(&worker, arrived, verdict)).await;
            drop(permit);
        });
    }

    fn again(&self, delivery: Delivery) -> Again {
        let worker = Arc::clone(&self.worker);
        Box::pin(async move { worker.handler.handle(&delivery).await })
    }
}

impl<H: Handler> Pulling<H> {
    async fn pull(&self, consumer: &PullConsumer) -> Result<(), AnyError> {
        let runner = &self.worker.runner;
        consumer.bind(&runner.broker).await?;
        // Whoever stands by is as ready as whoever works.
        runner.bound(&consumer.name);
        tokio::select! {
            () = self.until_reads(true) => {}
            () = runner.stop.cancelled() => return Ok(()),
        }
        // What is large and waits for a hosted agent is in nobody else's way.
        let room = match self.worker.kind {
            Some(_) => runner.broker.room.clone(),
            None => Room::default(),
        };
        let mut messages = Pull::start(&runner.broker, consumer, &room).await?;
        loop {
            let reads = self.reads();
            let next = async {
                match reads {
                    true => messages.next().await.map(Some),
                    // Whoever stands by goes on with what it has asked for: given back it would come again a second later. Meanwhile it
                    // may be needed again.
                    false => messages.rest().await,
                }
            };
            let next = tokio::select! {
                next = next => next?,
                () = self.until_reads(!reads) => continue,
                () = runner.stop.cancelled() => break,
            };
            let Some(taken) = next else { return Ok(()) };
            self.start(taken).await;
            if self.worker.gate.hold_back().await {
                runner.metrics.held_back.inc();
            }
        }
        messages.stop().await
    }
}

impl<H> Pulling<H> {
    /// Whether this replica reads the consumer.
    fn reads(&self) -> bool {
        let Worker { runner, kind, .. } = &*self.worker;
        kind.is_none() || runner.replicas.works()
    }

    /// Waits until this replica reads the consumer, or does not. What comes for a hosted agent is read by all: handling it is waiting for the
    /// agent, and with more replicas more of it waits at once.
    async fn until_reads(&self, reads: bool) {
        let Worker { runner, kind, .. } = &*self.worker;
        match kind {
            Some(_) => runner.replicas.until_works(reads).await,
            None if reads => {}
            None => std::future::pending().await,
        }
    }
}

/// Handles a delivery, unless another replica does.
async fn hand_off_or_handle<H: Handler>(worker: &Worker<H>, arrived: Arrived, verdict: Verdict) {
    let Arrived {
        delivery, reply, ..
    } = &arrived;
    if matches!(verdict, Verdict::Admitted(_))
        && hand_off::to_owner(&worker.runner, worker.kind, delivery, reply).await
    {
        return;
    }
    handle_one(worker, arrived, verdict).await;
}

async fn handle_one<H: Handler>(worker: &Worker<H>, arrived: Arrived, verdict: Verdict) {
    let Worker { runner, gate, .. } = worker;
    let every = Duration::from_millis(runner.work.ack_wait_ms) / 2;
    let settled = {
        let settling = std::pin::pin!(settle_one(worker, &arrived.delivery, verdict));
        keep_alive(settling, &runner.broker, &arrived.reply, every).await
    };
    if matches!(settled.0, Settlement::Acknowledge | Settlement::Terminate) {
        gate.done(arrived.delivery.sequence);
    }
    finish(runner, arrived, settled).await;
}

/// Waits until the turn of a delivery has come, and does with it what the gate has said.
async fn settle_one<H: Handler>(
    worker: &Worker<H>,
    delivery: &Delivery,
    verdict: Verdict,
) -> (Settlement, &'static str) {
    let Worker {
        runner,
        gate,
        handler,
        ..
    } = worker;
    let turn = tokio::select! {
        biased;
        turn = gate.turn(delivery) => turn.ok(),
        () = runner.stop.cancelled() => None,
    };
    let Some(turn) = turn else {
        return (Settlement::PutBack(pull::EXPIRES), "given_back");
    };
    let context = runner.context();
    let started = Instant::now();
    let settled = match verdict {
        Verdict::Admitted(_under_way) => {
            let _turn = turn;
            settle(context, &**handler, delivery).await
        }
        Verdict::Refused(excess) => gate.refuse(context, excess, delivery, turn).await,
        Verdict::Skipped(label) => (Settlement::Acknowledge, label),
    };
    let seconds = started.elapsed().as_secs_f64();
    runner.metrics.handling_seconds.observe(seconds);
    settled
}

/// Tells the broker what became of a delivery, and counts it.
async fn finish(
    runner: &ServiceRunner,
    Arrived {
        delivery, reply, ..
    }: Arrived,
    (settlement, verdict): (Settlement, &'static str),
) {
    let acknowledged = runner.broker.acknowledge(reply, ack_kind(settlement)).await;
    if let Err(error) = acknowledged {
        tracing::warn!(%error, "An acknowledgement could not be sent; the message will be delivered again.");
    }
    let consumer = Arc::clone(&delivery.consumer);
    let deliveries = &runner.metrics.deliveries;
    deliveries
        .get_or_create(&DeliveryLabels { consumer, verdict })
        .inc();
}

/// Tells the broker that a delivery is still being worked on, so that a slow one is not given to another process.
async fn keep_alive<T>(
    mut work: std::pin::Pin<&mut impl Future<Output = T>>,
    broker: &Broker,
    reply: &Subject,
    every: Duration,
) -> T {
    loop {
        match tokio::time::timeout(every, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Err(error) = broker.acknowledge(reply.clone(), AckKind::Progress).await {
                    tracing::warn!(%error, "The broker was not told that work goes on; it may deliver again.");
                }
            }
        }
    }
}

fn ack_kind(settlement: Settlement) -> AckKind {
    match settlement {
        Settlement::Acknowledge => AckKind::Ack,
        Settlement::Terminate => AckKind::Term,
        Settlement::PutBack(wait) => AckKind::Nak(Some(wait)),
    }
}

/// A delivery, and where it is acknowledged.
struct Arrived {
    delivery: Delivery,
    reply: Subject,
    /// How many messages wait behind it in its consumer.
    waiting: u64,
}

impl Arrived {
    /// None where the broker does not say where the message comes from.
    fn new(consumer: &Arc<str>, message: Message) -> Option<Self> {
        let Message {
            subject,
            reply,
            payload,
            headers,
            ..
        } = message;
        let reply = reply?;
        let info = DeliveryInfo::parse(&reply)?;
        debug_assert!(info.deliveries > 0, "a delivery that was never delivered");
        let delivery = Delivery {
            subject: subject.as_str().to_owned(),
            payload,
            trace: trace_of(headers.as_ref()),
            headers,
            stream: info.stream.to_owned(),
            sequence: info.sequence,
            deliveries: info.deliveries,
            stored_at: timestamp(info.stored_nanos),
            consumer: Arc::clone(consumer),
            over_limit: None,
            cost: Cost::default(),
        };
        let waiting = info.waiting;
        Some(Self {
            delivery,
            reply,
            waiting,
        })
    }
}
