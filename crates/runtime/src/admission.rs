//! Flood protection: whether and when a delivery is worked on, and how the others are reached behind a flood. What it
//! promises, and what not, is in `docs/floods.md`.
//!
//! A worker asks the [`Gate`] of its consumer about each delivery: may it be worked on, is its sender to be told that it
//! sends too much, or is there nothing to do? It then waits at the gate until the delivery's turn has come.

mod backlog_bypass;
mod deadline_burst;
mod fair_queue;
mod rate_limit;

use std::sync::{Arc, OnceLock};

use concord_events::topology::{ConsumerKind, Layout};
use concord_wire::AgentId;
use concord_wire::subject::Service;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::context::ServiceContext;
use crate::context::restrictions::Restrictions;
use crate::delivery::settle::Settlement;
use crate::delivery::{Budget, Delivery};
use crate::ports::Ports;
use crate::settings::WorkSettings;

use backlog_bypass::{BacklogBypass, PASSED};
use deadline_burst::{DeadlineBurst, DeadlineUnderWay};
use fair_queue::FairQueue;
use rate_limit::{Assessment, Excess, GATHERED, LIMITED, RateLimit, RateLimits};

pub(crate) use backlog_bypass::reader::{BypassReader, Intake};
pub(crate) use deadline_burst::Priority;

/// A message with more bytes is large.
const LARGE_BYTES: usize = 64 << 10;

/// Lists the agents that are registered, as far as the service knows.
pub(crate) type RegisteredAgents = Box<dyn Fn() -> Vec<AgentId> + Send + Sync>;

/// What the gates of one process share.
pub(crate) struct Admission {
    limits: Arc<RateLimits>,
    burst: Arc<DeadlineBurst>,
    registered: OnceLock<RegisteredAgents>,
    restrictions: Arc<Restrictions>,
    /// Large messages keep a processor busy for long: one thread stays free of them, where there are several.
    large: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Admission {
    /// `restrictions` are those that the service shows in its readiness; a flood is one of them.
    pub(crate) fn new(
        work: &WorkSettings,
        restrictions: Arc<Restrictions>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            limits: Arc::new(RateLimits::new(work)),
            burst: Arc::default(),
            registered: OnceLock::new(),
            restrictions,
            large: Arc::new(Semaphore::new((work.threads.get() - 1).max(1))),
            stop,
        }
    }

    /// From now on the service knows who is registered. Only the first call counts.
    pub(crate) fn know_registered(&self, registered: RegisteredAgents) {
        if self.registered.set(registered).is_err() {
            tracing::debug!("It is known already who is registered.");
        }
    }

    /// The agents that are registered, as far as the service knows.
    fn registered(&self) -> Vec<AgentId> {
        self.registered.get().map_or_else(Vec::new, |list| list())
    }

    /// What an agent may still cause with messages to a service.
    pub(crate) fn budget(&self, service: Service, agent: &AgentId) -> Arc<dyn Budget> {
        rate_limit::budget(&self.limits, ConsumerKind::Inbox(service), agent.clone())
    }

    /// Waits while there is a burst of deadlines, but no longer than a second.
    pub(crate) async fn give_way(&self) {
        self.burst.give_way().await;
    }
}

/// What is to be done with a delivery.
pub(crate) enum Verdict {
    /// It is worked on when its turn has come.
    Admitted(Admitted),
    /// In its place its sender is told that it sends too much, when the delivery's turn has come.
    Refused(Excess),
    /// It is acknowledged at once, and counted under this word.
    Skipped(&'static str),
}

/// Kept for as long as an admitted delivery is under way.
pub(crate) struct Admitted {
    _deadline: Option<DeadlineUnderWay>,
}

/// The turn of a delivery, which lasts as long as this is held.
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
    _large: Option<OwnedSemaphorePermit>,
}

/// How a process reads a consumer whose senders have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPath {
    /// In the order of the stream.
    InOrder,
    /// Past the backlog of a flood, by the senders' subjects.
    PastBacklog,
}

/// The limit of a consumer's senders, on one of the two paths on which the consumer is read.
struct Limited {
    limit: RateLimit,
    bypass: Arc<BacklogBypass>,
    path: ReadPath,
}

/// Where a worker asks about the deliveries of one consumer.
pub(crate) struct Gate {
    admission: Arc<Admission>,
    limited: Option<Limited>,
    /// None for the inbox of a hosted agent: others need not wait for what it takes long to answer.
    large: Option<Arc<Semaphore>>,
    queue: FairQueue,
    priority: Priority,
}

impl Gate {
    /// The gate of a consumer that is read in order; without a kind it is the inbox of a hosted agent. `permits` bounds how many
    /// deliveries are worked on at once.
    pub(crate) fn new(
        admission: &Arc<Admission>,
        layout: &Layout,
        (kind, consumer): (Option<ConsumerKind>, &str),
        priority: Priority,
        permits: Arc<Semaphore>,
    ) -> Self {
        let limited = RateLimit::of(layout, consumer).map(|limit| Limited {
            limit,
            bypass: Arc::default(),
            path: ReadPath::InOrder,
        });
        Self {
            admission: Arc::clone(admission),
            limited,
            large: kind.map(|_| Arc::clone(&admission.large)),
            queue: FairQueue::new(permits, priority),
            priority,
        }
    }

    /// The gate of the same consumer for what is read past its backlog; none where its senders have no limit.
    pub(crate) fn past_backlog(&self, in_flight_max: usize) -> Option<Self> {
        let limited = self.limited.as_ref()?;
        debug_assert_eq!(limited.path, ReadPath::InOrder, "a bypass has no bypass");
        // Permits of its own: what the flood's messages occupy is not taken away from the others.
        let permits = Arc::new(Semaphore::new(in_flight_max));
        Some(Self {
            admission: Arc::clone(&self.admission),
            limited: Some(Limited {
                limit: limited.limit,
                bypass: Arc::clone(&limited.bypass),
                path: ReadPath::PastBacklog,
            }),
            large: self.large.clone(),
            queue: FairQueue::new(permits, Priority::Independent),
            priority: Priority::Independent,
        })
    }

    /// What is to be done with a delivery behind which `waiting` others wait in its consumer.
    pub(crate) fn admit<P: Ports>(
        &self,
        context: &ServiceContext<P>,
        delivery: &mut Delivery,
        waiting: u64,
    ) -> Verdict {
        let limits = &self.admission.limits;
        let excess = match &self.limited {
            None => None,
            Some(limited) => match limited.assess(context, limits, delivery, waiting) {
                Ok(excess) => excess,
                Err(skipped) => return Verdict::Skipped(skipped),
            },
        };
        match excess {
            Some(Excess::Skip) => Verdict::Skipped(LIMITED),
            Some(excess) => Verdict::Refused(excess),
            None => self.admitted(delivery, waiting),
        }
    }

    /// Admits a delivery that another replica has admitted and handed over.
    pub(crate) fn take_over<P: Ports>(
        &self,
        context: &ServiceContext<P>,
        delivery: &mut Delivery,
        waiting: u64,
    ) -> Verdict {
        if let Some(Limited { limit, .. }) = &self.limited {
            limit.charge_sender(context, &self.admission.limits, delivery);
        }
        self.admitted(delivery, waiting)
    }

    fn admitted(&self, delivery: &Delivery, waiting: u64) -> Verdict {
        let burst = &self.admission.burst;
        let is_deadline = self.priority == Priority::Deadline;
        Verdict::Admitted(Admitted {
            _deadline: is_deadline.then(|| burst.delivered(&delivery.consumer, waiting)),
        })
    }

    /// Waits until the turn of a delivery has come. Of large ones, few are worked on at once in the process.
    pub(crate) async fn turn(&self, delivery: &Delivery) -> Result<Turn, AcquireError> {
        let large = match &self.large {
            Some(large) if delivery.bytes() > LARGE_BYTES => {
                Some(Arc::clone(large).acquire_owned().await?)
            }
            _ => None,
        };
        Ok(Turn {
            _permit: self.queue.wait(&self.admission.burst).await?,
            _large: large,
        })
    }

    /// Tells the sender of a delivery that it sends too much. Returns what the broker is to be told, and a word for the
    /// metrics.
    pub(crate) async fn refuse<P: Ports>(
        &self,
        context: &ServiceContext<P>,
        excess: Excess,
        delivery: &Delivery,
        turn: Turn,
    ) -> (Settlement, &'static str) {
        let Admission { limits, stop, .. } = &*self.admission;
        let told = match &self.limited {
            Some(Limited { limit, .. }) => {
                limit
                    .refuse((context, limits, stop), excess, delivery, turn)
                    .await
            }
            None => Ok(()),
        };
        match told {
            Ok(()) => (Settlement::Acknowledge, LIMITED),
            Err(error) => {
                tracing::warn!(subject = %delivery.subject, %error, "A sender was not told of its limit; trying again.");
                (Settlement::PutBack(GATHERED), "failed")
            }
        }
    }

    /// Takes into account that a delivery is done with: in order, it will be passed over.
    pub(crate) fn done(&self, sequence: u64) {
        if let Some(Limited {
            bypass,
            path: ReadPath::PastBacklog,
            ..
        }) = &self.limited
        {
            bypass.remember(sequence);
        }
    }

    /// Slows the reading of a flood down while the others are read past it. Returns whether it did.
    pub(crate) async fn hold_back(&self) -> bool {
        match &self.limited {
            Some(Limited { bypass, .. }) => {
                let rate = self.admission.limits.flood_rate();
                bypass.hold_back(rate).await
            }
            None => false,
        }
    }
}

impl Limited {
    /// What is to be done in place of handling a delivery, if anything; or a word for the metrics, where the delivery was
    /// handled on the other path.
    fn assess<P: Ports>(
        &self,
        context: &ServiceContext<P>,
        limits: &Arc<RateLimits>,
        delivery: &mut Delivery,
        waiting: u64,
    ) -> Result<Option<Excess>, &'static str> {
        let is_handled = match self.path {
            ReadPath::InOrder => {
                self.bypass.came_to(delivery.sequence, waiting);
                self.bypass.take_handled(delivery.sequence)
            }
            ReadPath::PastBacklog => self.bypass.is_handled(delivery.sequence),
        };
        if is_handled {
            return Err(PASSED);
        }
        let Assessment { excess, floods } = self.limit.assess(context, limits, delivery);
        if floods && self.path == ReadPath::InOrder {
            self.bypass.flooded();
        }
        Ok(excess)
    }
}
