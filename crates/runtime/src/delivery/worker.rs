//! Pulling messages: bounded in number, each handled on its own task, acknowledged when done, put back when it failed,
//! and kept under `dead` when it fails again and again. Survives the loss of the broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::AckKind;
use async_nats::{Message, Subject};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::backlog_bypass::{self, Bypass, PASSED, Way};
use crate::admission::deadline_burst::Turn;
use crate::admission::rate_limit::{LIMITED, Limit, Look, Over};
use crate::broker::delivery_info::Place;
use crate::broker::provision::PullConsumer;
use crate::broker::pull::{self, Pull, Taken};
use crate::broker::{Broker, timestamp, trace_of};
use crate::delivery::fair_queue::Line;
use crate::delivery::poison;
use crate::delivery::settle::{Settlement, settle};
use crate::delivery::{Delivery, ErrorChain, Handler};
use crate::service::ServiceRunner;
use crate::service::metrics::DeliveryLabels;

/// Pulls from `consumer` until `stop`, then finishes what is under way. `permits` bounds how many deliveries are.
pub(crate) async fn run<H: Handler>(
    shell: ServiceRunner,
    consumer: PullConsumer,
    handler: Arc<H>,
    permits: Arc<Semaphore>,
    stop: CancellationToken,
) {
    let limited = Limit::of(&shell.broker.layout, &consumer.name)
        .map(|limit| (Arc::<Bypass>::default(), limit));
    let tasks = TaskTracker::new();
    let pulling = |way, line| {
        let limit = limited
            .clone()
            .map(|(bypass, limit)| Limited { limit, bypass, way });
        // Of one name: what is read on both ways is one delivery, refused under one id and counted once.
        let (name, handler) = (consumer.name.as_str().into(), Arc::clone(&handler));
        let worker = Arc::new(Worker {
            shell: shell.clone(),
            consumer: name,
            limit,
            line,
            handler,
        });
        Pulling {
            worker,
            tasks: tasks.clone(),
        }
    };
    let work = pulling(Way::Through, Line::new(permits, consumer.turn));
    if let Some(limited) = &limited {
        // What the flood's messages are allowed to occupy is not taken away from the others.
        let past = pulling(
            Way::Past,
            Line::new(
                Arc::new(Semaphore::new(consumer.in_flight_max)),
                Turn::Apart,
            ),
        );
        let read_past = backlog_bypass::consumer(&consumer);
        tasks.spawn(poison::watch(shell.clone(), read_past.clone()));
        tasks.spawn(backlog_bypass::run(
            past,
            limited.clone(),
            read_past,
            stop.clone(),
        ));
    }
    let mut wait = Duration::from_millis(100);
    while !stop.is_cancelled() {
        let started = Instant::now();
        if let Err(error) = work.pull(&consumer, &stop).await {
            tracing::warn!(consumer = %consumer.name, error = %ErrorChain(&*error), "Pulling failed; starting again.");
            if started.elapsed() > Duration::from_secs(10) {
                wait = Duration::from_millis(100);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(Duration::from_secs(2)),
                () = stop.cancelled() => {}
            }
        }
    }
    tasks.close();
    tasks.wait().await;
}

/// What handles single deliveries; every task holds it.
struct Worker<H> {
    shell: ServiceRunner,
    consumer: Arc<str>,
    limit: Option<Limited>,
    line: Line,
    handler: Arc<H>,
}

/// What is due to agents having a limit.
#[derive(Clone)]
struct Limited {
    limit: Limit,
    bypass: Arc<Bypass>,
    way: Way,
}

/// Deliveries of one consumer, as they come.
pub(crate) struct Pulling<H> {
    worker: Arc<Worker<H>>,
    tasks: TaskTracker,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl<H: Handler> Pulling<H> {
    pub(crate) fn shell(&self) -> &ServiceRunner {
        &self.worker.shell
    }

    /// The consumer that is read in order.
    pub(crate) fn consumer(&self) -> &str {
        &self.worker.consumer
    }

    async fn pull(
        &self,
        consumer: &PullConsumer,
        stop: &CancellationToken,
    ) -> Result<(), AnyError> {
        let shell = self.shell();
        consumer.bind(&shell.broker).await?;
        let mut messages = Pull::start(&shell.broker, consumer).await?;
        shell.bound(&consumer.name);
        loop {
            let taken = tokio::select! {
                next = messages.next() => next?,
                () = stop.cancelled() => break,
            };
            if consumer.turn == Turn::First {
                shell.rush.deadline();
            }
            self.start(taken).await;
            if let Some(limited) = &self.worker.limit {
                limited.bypass.hold_back(shell.limits.flood_rate()).await;
            }
        }
        messages.stop().await
    }

    /// Has a delivery handled when its turn comes. Meanwhile the broker is told that it is in good hands: while a process is
    /// slow the others would be given all that waits in it as well, and nobody would be slow alone.
    pub(crate) async fn start(&self, Taken { message, place }: Taken) {
        let Worker {
            shell,
            consumer,
            limit,
            ..
        } = &*self.worker;
        let Some(Arrived {
            mut delivery,
            reply,
            waiting,
        }) = arrived(consumer, message)
        else {
            tracing::error!(
                "A delivery without its stream's description was left to be delivered again."
            );
            return;
        };
        let over = match limit {
            Some(limited) => match limited.look(shell, &mut delivery, waiting) {
                // Here and at once, so that a flood is over as fast as it can be read, whatever is under way.
                Looked::Passed(verdict) => {
                    finish(shell, &delivery, reply, (AckKind::Ack, verdict)).await;
                    return;
                }
                Looked::Over(over) => Some((limited.limit, over)),
                Looked::Admitted => None,
            },
            None => None,
        };
        let worker = Arc::clone(&self.worker);
        self.tasks.spawn(async move {
            // Boxed, because a task that holds all of it is moved several times on its way to the scheduler and back.
            Box::pin(handle_one(&worker, (delivery, reply), over)).await;
            drop(place);
        });
    }
}

/// What is to be done with a delivery.
enum Looked {
    /// To be handled.
    Admitted,
    /// Its sender has to be told something in place of that.
    Over(Over),
    /// Nothing, for this reason.
    Passed(&'static str),
}

impl Limited {
    fn look(&self, shell: &ServiceRunner, delivery: &mut Delivery, waiting: u64) -> Looked {
        if self.way == Way::Through {
            self.bypass.came_to(delivery.sequence, waiting);
            if self.bypass.has_handled(delivery.sequence) {
                return Looked::Passed(PASSED);
            }
        } else if self.bypass.knows(delivery.sequence) {
            return Looked::Passed(PASSED);
        }
        let Look { over, floods } = self.limit.look(shell, delivery);
        if self.way == Way::Through && floods {
            self.bypass.flooded();
        }
        match over {
            Some(Over::Passed) => Looked::Passed(LIMITED),
            Some(over) => Looked::Over(over),
            None => Looked::Admitted,
        }
    }
}

async fn handle_one<H: Handler>(
    worker: &Worker<H>,
    (delivery, reply): (Delivery, Subject),
    over: Option<(Limit, Over)>,
) {
    let Worker {
        shell,
        handler,
        line,
        ..
    } = worker;
    let handling = async {
        let turn = tokio::select! {
            biased;
            turn = line.wait(&shell.rush) => turn.ok(),
            () = shell.stop.cancelled() => None,
        };
        let Some(turn) = turn else {
            return (AckKind::Nak(Some(pull::EXPIRES)), "given_back");
        };
        let started = Instant::now();
        let done = match over {
            Some((limit, over)) => limit.refuse(shell, over, &delivery, turn).await,
            None => {
                let _turn = turn;
                let (settlement, verdict) = settle(shell.context(), &**handler, &delivery).await;
                (ack_kind(settlement), verdict)
            }
        };
        shell
            .metrics
            .handling_seconds
            .observe(started.elapsed().as_secs_f64());
        done
    };
    let every = Duration::from_millis(shell.work.ack_wait_ms) / 2;
    let done = keep_alive(std::pin::pin!(handling), &shell.broker, &reply, every).await;
    if let Some(Limited {
        bypass,
        way: Way::Past,
        ..
    }) = &worker.limit
        && matches!(done.0, AckKind::Ack | AckKind::Term)
    {
        bypass.remember(delivery.sequence);
    }
    finish(shell, &delivery, reply, done).await;
}

/// Tells the broker what became of a delivery, and counts it.
async fn finish(
    shell: &ServiceRunner,
    delivery: &Delivery,
    reply: Subject,
    (answer, verdict): (AckKind, &'static str),
) {
    if let Err(error) = shell.broker.acknowledge(reply, answer).await {
        tracing::warn!(%error, "An acknowledgement could not be sent; the message will be delivered again.");
    }
    let consumer = Arc::clone(&delivery.consumer);
    shell
        .metrics
        .deliveries
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
    /// How many messages wait in its consumer.
    waiting: u64,
}

/// None where the broker does not say where the message comes from.
fn arrived(consumer: &Arc<str>, message: Message) -> Option<Arrived> {
    let Message {
        subject,
        reply,
        payload,
        headers,
        ..
    } = message;
    let reply = reply?;
    let place = Place::parse(&reply)?;
    let delivery = Delivery {
        subject: subject.as_str().to_owned(),
        payload,
        trace: trace_of(headers.as_ref()),
        headers,
        stream: place.stream.to_owned(),
        sequence: place.sequence,
        deliveries: place.deliveries,
        stored_at: timestamp(place.stored_nanos),
        consumer: Arc::clone(consumer),
        over_limit: None,
    };
    let waiting = place.waiting;
    Some(Arrived {
        delivery,
        reply,
        waiting,
    })
}
