//! Pulling messages: bounded in number, each handled on its own task, acknowledged when done, put back when it failed,
//! and kept under `dead` when it fails again and again. Survives the loss of the broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, AckKind};
use bytes::Bytes;
use concord_protocol::dead::DeadReason;
use concord_protocol::{Fault, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broker::{timestamp, trace_of};
use crate::limit::{LIMITED, Limit, Over};
use crate::metrics::DeliveryLabels;
use crate::provision::PullConsumer;
use crate::pull::Pull;
use crate::rush::Turn;
use crate::service::Shell;
use crate::settings::WorkSettings;
use crate::trace::Trace;
use crate::{clock, dead, refuse};

/// A message or fact as it was delivered.
pub struct Delivery {
    /// Its subject.
    pub subject: String,
    /// Its body.
    pub payload: Bytes,
    /// Its headers.
    pub headers: Option<async_nats::HeaderMap>,
    /// The trace context it brought.
    pub trace: Option<Trace>,
    /// The stream it is stored in.
    pub stream: String,
    /// Where in the stream.
    pub sequence: u64,
    /// How often it was delivered, this time included.
    pub deliveries: u64,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// The consumer that delivered it.
    pub consumer: Arc<str>,
    /// Why it is over its sender's limit, where its handler has to end what it begins.
    pub over_limit: Option<Box<Fault>>,
}

/// A delivery that was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It need not be delivered again.
    Acknowledge,
    /// Deliver it again after this time; not a failure.
    Later(Duration),
}

/// A delivery that was not handled.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be used: its sender is told, and it is kept under `dead`.
    Refused(Fault),
    /// Something failed; it is tried again.
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// Someone outside has refused it for good, for this reason: it is kept under `dead`.
    Undeliverable(String),
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Problem {
    fn from(error: E) -> Self {
        // A fault is an error too, so that `?` works on both; it is not a failure of ours.
        let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
        match boxed.downcast::<Fault>() {
            Ok(fault) => Self::Refused(*fault),
            Err(error) => Self::Failed(error),
        }
    }
}

/// What is done with each delivery of a consumer.
pub trait Handler: Send + Sync + 'static {
    /// Handles one delivery. May be called at the same time for others, and again for the same.
    fn handle(&self, delivery: &Delivery) -> impl Future<Output = Result<Done, Problem>> + Send;

    /// How long a delivery that fails is tried again.
    fn patience(&self, work: &WorkSettings) -> Patience {
        Patience {
            tries_max: work.deliveries_max,
            age_min: Duration::ZERO,
            wait_first: Duration::from_millis(50),
            wait_max: Duration::from_millis(6_400),
        }
    }
}

/// How long a delivery that fails is tried again. It is given up when both are over, the tries and the age: the broker
/// counts as a delivery too what this process had no time to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Tries before it is given up.
    pub tries_max: u64,
    /// Age before which it is not given up.
    pub age_min: Duration,
    /// Wait after the first try, doubled after each further one.
    pub wait_first: Duration,
    /// Longest wait.
    pub wait_max: Duration,
}

impl Patience {
    /// Tries with growing waits between them, and as much time as these waits take together.
    pub fn spread(tries_max: u64, wait_first: Duration, wait_max: Duration) -> Self {
        let mut patience = Self { tries_max, age_min: Duration::ZERO, wait_first, wait_max };
        patience.age_min =
            (1..tries_max).map(|tried| patience.wait(tried)).fold(Duration::ZERO, Duration::saturating_add);
        patience
    }

    /// Whether what was tried so often, and is so old, is given up.
    pub fn is_over(&self, tried: u64, age: Duration) -> bool {
        tried >= self.tries_max && age >= self.age_min
    }

    /// The wait after so many tries.
    pub fn wait(&self, tried: u64) -> Duration {
        let doublings = u32::try_from(tried.saturating_sub(1)).unwrap_or(u32::MAX);
        self.wait_first.saturating_mul(2_u32.saturating_pow(doublings)).min(self.wait_max)
    }
}

impl Delivery {
    /// How long ago it was stored.
    pub fn age(&self) -> Duration {
        Duration::from_millis(clock::now().millis_since(self.stored_at))
    }
}

/// Pulls from `consumer` until `stop`, then finishes what is under way. `permits` bounds how many deliveries are.
pub async fn run<H: Handler>(
    shell: Shell,
    consumer: PullConsumer,
    handler: Arc<H>,
    permits: Arc<Semaphore>,
    stop: CancellationToken,
) {
    let limit = Limit::of(&shell.broker.layout, &consumer.name);
    let worker = Arc::new(Worker { shell, consumer: consumer.name.as_str().into(), limit, handler });
    let work = Pulling { worker, permits, tasks: TaskTracker::new() };
    let mut wait = Duration::from_millis(100);
    while !stop.is_cancelled() {
        let started = Instant::now();
        if let Err(error) = work.pull(&consumer, &stop).await {
            tracing::warn!(consumer = %consumer.name, error = %Chain(&*error), "Pulling failed; starting again.");
            if started.elapsed() > Duration::from_secs(10) {
                wait = Duration::from_millis(100);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(Duration::from_secs(2)),
                () = stop.cancelled() => {}
            }
        }
    }
    work.tasks.close();
    work.tasks.wait().await;
}

/// What handles single deliveries; every task holds it.
struct Worker<H> {
    shell: Shell,
    consumer: Arc<str>,
    limit: Option<Limit>,
    handler: Arc<H>,
}

struct Pulling<H> {
    worker: Arc<Worker<H>>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl<H: Handler> Pulling<H> {
    async fn pull(&self, consumer: &PullConsumer, stop: &CancellationToken) -> Result<(), AnyError> {
        let Worker { shell, .. } = &*self.worker;
        consumer.bind(&shell.broker).await?;
        let batch = (consumer.in_flight_max * 2).clamp(1, 1_000);
        let mut messages = Pull::start(&shell.broker, consumer, batch).await?;
        shell.bound(&consumer.name);
        // How many may still be taken in a rush of deadlines.
        let mut turn = 0;
        loop {
            let message = tokio::select! {
                next = messages.next() => next?,
                () = stop.cancelled() => break,
            };
            match consumer.turn {
                Turn::First => shell.rush.deadline(),
                Turn::GivesWay if turn == 0 => turn = if shell.rush.give_way().await { batch } else { 0 },
                Turn::GivesWay => turn -= 1,
                Turn::Apart => {}
            }
            self.start(message).await?;
        }
        messages.stop().await
    }

    async fn start(&self, message: jetstream::Message) -> Result<(), AnyError> {
        let Worker { shell, consumer, limit, .. } = &*self.worker;
        let (mut delivery, acker) = match split(consumer, message) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!(%error, "A delivery without its stream's description was left to be delivered again.");
                return Ok(());
            }
        };
        let over = limit.and_then(|limit| Some((limit, limit.look(shell, &mut delivery)?)));
        if matches!(over, Some((_, Over::Passed))) {
            // Here and at once, so that a flood is over as fast as it can be read, whatever is under way.
            finish(shell, &delivery, &acker, (AckKind::Ack, LIMITED)).await;
            return Ok(());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await?;
        let worker = Arc::clone(&self.worker);
        self.tasks.spawn(async move {
            // Boxed, because a task that holds all of it is moved several times on its way to the scheduler and back.
            Box::pin(handle_one(&worker, (delivery, acker), over, permit)).await;
        });
        Ok(())
    }
}

async fn handle_one<H: Handler>(
    worker: &Worker<H>,
    (delivery, acker): (Delivery, jetstream::message::Acker),
    over: Option<(Limit, Over)>,
    permit: OwnedSemaphorePermit,
) {
    let Worker { shell, handler, .. } = worker;
    let started = Instant::now();
    let handling = async {
        match over {
            Some((limit, over)) => limit.refuse(shell, over, &delivery, permit).await,
            None => {
                let _permit = permit;
                handle(shell, &**handler, &delivery).await
            }
        }
    };
    let every = Duration::from_millis(shell.work.ack_wait_ms) / 2;
    let done = keep_alive(std::pin::pin!(handling), &acker, every).await;
    finish(shell, &delivery, &acker, done).await;
    shell.metrics.handling_seconds.observe(started.elapsed().as_secs_f64());
}

/// Tells the broker what became of a delivery, and counts it.
async fn finish(
    shell: &Shell,
    delivery: &Delivery,
    acker: &jetstream::message::Acker,
    (answer, verdict): (AckKind, &'static str),
) {
    if let Err(error) = acker.ack_with(answer).await {
        tracing::warn!(%error, "An acknowledgement could not be sent; the message will be delivered again.");
    }
    let consumer = Arc::clone(&delivery.consumer);
    shell.metrics.deliveries.get_or_create(&DeliveryLabels { consumer, verdict }).inc();
}

/// Tells the broker that a delivery is still being worked on, so that a slow one is not given to another process.
async fn keep_alive<T>(
    mut work: std::pin::Pin<&mut impl Future<Output = T>>,
    acker: &jetstream::message::Acker,
    every: Duration,
) -> T {
    loop {
        match tokio::time::timeout(every, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Err(error) = acker.ack_with(AckKind::Progress).await {
                    tracing::warn!(%error, "The broker was not told that work goes on; it may deliver again.");
                }
            }
        }
    }
}

async fn handle<H: Handler>(shell: &Shell, handler: &H, delivery: &Delivery) -> (AckKind, &'static str) {
    let patience = handler.patience(&shell.work);
    // Counted here and not by the broker, so that what crashes a process again and again is recorded too.
    if patience.is_over(delivery.deliveries.saturating_sub(1), delivery.age()) {
        let why = "it was delivered again and again without an end";
        return give_up(shell, delivery, why, DeadReason::Exhausted, patience).await;
    }
    match handler.handle(delivery).await {
        Ok(Done::Acknowledge) => (AckKind::Ack, "acked"),
        Ok(Done::Later(wait)) => (AckKind::Nak(Some(wait)), "postponed"),
        Err(Problem::Refused(fault)) => match refuse::refuse(shell, delivery, &fault).await {
            Ok(()) => (AckKind::Term, "refused"),
            Err(error) => retry(delivery, &error.into(), patience),
        },
        Err(Problem::Undeliverable(why)) => give_up(shell, delivery, &why, DeadReason::Undeliverable, patience).await,
        Err(Problem::Failed(error)) if patience.is_over(delivery.deliveries, delivery.age()) => {
            let why = Chain(&*error).to_string();
            give_up(shell, delivery, &why, DeadReason::Exhausted, patience).await
        }
        Err(Problem::Failed(error)) => retry(delivery, &error, patience),
    }
}

fn retry(delivery: &Delivery, error: &AnyError, patience: Patience) -> (AckKind, &'static str) {
    let wait = patience.wait(delivery.deliveries);
    tracing::warn!(
        subject = %delivery.subject, sequence = delivery.sequence, deliveries = delivery.deliveries,
        error = %Chain(&**error), "Handling failed; it will be tried again."
    );
    (AckKind::Nak(Some(wait)), "failed")
}

async fn give_up(
    shell: &Shell,
    delivery: &Delivery,
    why: &str,
    reason: DeadReason,
    patience: Patience,
) -> (AckKind, &'static str) {
    match dead::keep_failed(shell, delivery, why, reason).await {
        Ok(()) => {
            tracing::error!(subject = %delivery.subject, sequence = delivery.sequence, why, "Given up; kept under dead.");
            shell.count_dead(reason);
            (AckKind::Term, "dead")
        }
        Err(error) => retry(delivery, &error.into(), patience),
    }
}

fn split(consumer: &Arc<str>, message: jetstream::Message) -> Result<(Delivery, jetstream::message::Acker), AnyError> {
    let (stream, sequence, deliveries, published) = {
        let info = message.info()?;
        let deliveries = u64::try_from(info.delivered).unwrap_or(0);
        (info.stream.to_owned(), info.stream_sequence, deliveries, info.published.unix_timestamp_nanos())
    };
    let (message, acker) = message.split();
    let delivery = Delivery {
        subject: message.subject.to_string(),
        payload: message.payload,
        trace: trace_of(message.headers.as_ref()),
        headers: message.headers,
        stream,
        sequence,
        deliveries,
        stored_at: timestamp(published),
        consumer: Arc::clone(consumer),
        over_limit: None,
    };
    Ok((delivery, acker))
}

/// An error with its causes, on one line.
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'a));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded_and_both_tries_and_age_must_be_over() {
        let seconds = Duration::from_secs;
        let patience = Patience::spread(5, seconds(5), seconds(20));
        assert_eq!([1, 2, 3, 4, 100].map(|tried| patience.wait(tried).as_secs()), [5, 10, 20, 20, 20]);
        assert_eq!(patience.age_min, seconds(55));
        for (tried, age, over) in [(4, 3_600, false), (5, 54, false), (5, 55, true), (90, 54, false)] {
            assert_eq!(patience.is_over(tried, seconds(age)), over, "{tried} tries, {age} s");
        }
    }
}
