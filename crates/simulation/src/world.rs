//! Virtual time, and everything that is going to happen in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concord_events::topology::StreamKind;
use concord_runtime::delivery::Delivery;
use concord_wire::Timestamp;
use concord_wire::subject::{Subject, SubjectSpace};

use crate::agents::OutgoingMessage;
use crate::agents::operators::Operation;
use crate::broker::{Broker, Publication, Receipt};
use crate::executor::Incarnation;
use crate::faults::{Faults, InjectedBug};
use crate::network::{Arrival, Cell, Reply};
use crate::owners::Question;
use crate::plan::Plan;
use crate::random::Random;
use crate::report::Counts;

/// The instant at which every world begins: 2027-01-15T08:00:00Z.
const BEGINNING_UNIX_MILLIS: i64 = 1_800_000_000_000;
/// After this long without acknowledgement a delivery is made again: the services' default.
const ACK_WAIT_MS: u64 = 5_000;

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Action {
    /// A request reaches the broker.
    Arrive(Arrival),
    /// An answer reaches who asked.
    Answer(Cell, Reply),
    /// Who asked waits no longer.
    GiveUp(Cell),
    /// A consumer looks for a process that takes a delivery.
    Offer { consumer: usize, sequence: u64 },
    /// A delivery reaches a process.
    Deliver {
        consumer: usize,
        sequence: u64,
        incarnation: Incarnation,
    },
    /// The acknowledgement of a delivery is overdue.
    Lapse {
        consumer: usize,
        sequence: u64,
        lease: u32,
    },
    /// The broker's scheduler publishes a deadline.
    Fire { target: String, generation: u64 },
    /// A process is killed.
    Crash(Incarnation),
    /// A replica is started again.
    Restart { replica: usize },
    /// A second has passed: the broker may go away for a while.
    Second,
    /// What one replica asks another for reaches it.
    Ask(Question),
    /// A replica looks for deadlines that the broker did not fire.
    Watch { replica: usize },
    /// Whoever a message is addressed to reads it.
    Hear { sequence: u64 },
    /// Somebody who is no service publishes something.
    Say(OutgoingMessage),
    /// An operator asks a service for something.
    Operate(Arc<Operation>),
    /// Nothing goes wrong from here on.
    Calm,
}

/// Everything outside the processes.
pub(crate) struct World {
    pub(crate) now: u64,
    plan: Plan<Action>,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) injected_bug: Option<InjectedBug>,
    pub(crate) broker: Broker,
    /// Until when the broker is away.
    pub(crate) away_until: u64,
    pub(crate) counts: Counts,
    /// Deliveries that failed again and again. Faults alone never last that long here.
    pub(crate) given_up: Vec<String>,
    /// What operators have asked for: no stream keeps it.
    pub(crate) operated: Vec<Arc<Operation>>,
    /// Things that people will say or read: as long as there are any, it is not quiet.
    pub(crate) talk: u64,
    /// What happened, for a reader; none when nobody wants to know.
    log: Option<Vec<String>>,
}

/// The world as its processes share it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// Everything runs on one thread, so nobody ever waits here.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    pub(crate) fn new(
        random: Random,
        faults: Faults,
        injected_bug: Option<InjectedBug>,
        verbose: bool,
    ) -> Self {
        Self {
            now: 0,
            plan: Plan::default(),
            random,
            faults,
            injected_bug,
            broker: Broker::new(),
            away_until: 0,
            counts: Counts::default(),
            given_up: Vec::new(),
            operated: Vec::new(),
            talk: 0,
            log: verbose.then(Vec::new),
        }
    }

    /// The present, as a clock shows it.
    pub(crate) fn clock(&self) -> Timestamp {
        instant(self.now)
    }

    pub(crate) fn subjects(&self) -> &SubjectSpace {
        &self.broker.layout.subjects
    }

    /// Writes a line of the log; the line is made only when somebody reads it.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push(format!("{now:>8} ms  {}", line()));
        }
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.take().unwrap_or_default()
    }

    /// A service has given a delivery up.
    pub(crate) fn give_up(&mut self, delivery: &Delivery) {
        self.counts.given_up += 1;
        self.given_up.push(format!(
            "{} gave up {} at {}",
            delivery.consumer, delivery.subject, delivery.sequence
        ));
    }

    /// Plans something for `in_ms` from now.
    pub(crate) fn plan(&mut self, in_ms: u64, action: Action) {
        if matches!(
            action,
            Action::Hear { .. } | Action::Say(_) | Action::Operate(_)
        ) {
            self.talk += 1;
        }
        self.plan.push(self.now.saturating_add(in_ms), action);
    }

    /// Goes on to the next action.
    pub(crate) fn advance(&mut self) -> Option<Action> {
        let (at, action) = self.plan.pop()?;
        self.now = at;
        Some(action)
    }

    /// How long something takes on its way.
    pub(crate) fn delay(&mut self) -> u64 {
        if self.random.chance(self.faults.straggler) {
            return self.random.between(0, self.faults.straggler_ms_max);
        }
        self.random.between(0, self.faults.delay_ms_max)
    }

    /// How long until the broker is there again; 0 when it is there.
    pub(crate) fn away_ms(&self) -> u64 {
        self.away_until.saturating_sub(self.now)
    }

    /// Stores a publication, and plans what follows from that.
    pub(crate) fn publish(&mut self, kind: StreamKind, publication: Publication) -> Receipt {
        let subject = publication.subject.clone();
        let receipt = self.broker.publish(self.now, kind, publication);
        if !receipt.duplicate {
            self.announce(kind, receipt.sequence, &subject);
        }
        receipt
    }

    /// Has a stored message read by those it is for.
    pub(crate) fn announce(&mut self, kind: StreamKind, sequence: u64, subject: &str) {
        self.note(|| format!("{kind:?} {sequence}: {subject}"));
        if kind == StreamKind::Timers {
            self.replace_due(sequence, subject);
        }
        for consumer in self.broker.readers(kind, subject) {
            if let Some(consumer) = self.broker.consumers.get_mut(consumer) {
                consumer
                    .pending
                    .insert(sequence, crate::broker::Pending::default());
            }
            let delay = self.delay();
            self.plan(delay, Action::Offer { consumer, sequence });
        }
        if kind == StreamKind::Messages
            && matches!(self.subjects().parse(subject), Ok(Subject::Message { .. }))
        {
            let delay = self.delay();
            self.plan(delay, Action::Hear { sequence });
        }
    }

    /// The stream of timers keeps one message for each subject: a newer one deletes the older, handled or not.
    fn replace_due(&mut self, sequence: u64, subject: &str) {
        let same = |stored: &&crate::broker::Stored| {
            stored.sequence < sequence && stored.publication.subject == subject
        };
        let older: Vec<u64> = self
            .broker
            .messages(StreamKind::Timers)
            .iter()
            .filter(same)
            .map(|stored| stored.sequence)
            .collect();
        for consumer in self.broker.readers(StreamKind::Timers, subject) {
            for sequence in &older {
                self.broker.acknowledge(consumer, *sequence);
            }
        }
    }

    /// A delivery begins: when its acknowledgement is overdue it is made again.
    pub(crate) fn lease(&mut self, consumer: usize, sequence: u64) {
        let pending = self
            .broker
            .consumers
            .get_mut(consumer)
            .and_then(|c| c.pending.get_mut(&sequence));
        let Some(pending) = pending else { return };
        pending.lease += 1;
        let lease = pending.lease;
        if lease > 1 {
            self.counts.redeliveries += 1;
        }
        self.plan(
            ACK_WAIT_MS,
            Action::Lapse {
                consumer,
                sequence,
                lease,
            },
        );
    }

    /// Asks the scheduler to hold a deadline.
    pub(crate) fn arm(&mut self, target: &str, due: Timestamp, body: Arc<[u8]>) {
        let due = u64::try_from(due.unix_millis() - BEGINNING_UNIX_MILLIS).unwrap_or(0);
        let chance = (&mut self.random, &self.faults);
        if let Some(generation) = self.broker.scheduler.arm(chance, target, body) {
            let late = self.random.between(0, 20);
            let early = if self.injected_bug == Some(InjectedBug::EarlyFire) {
                100
            } else {
                0
            };
            let in_ms = (due.saturating_sub(self.now) + late).saturating_sub(early);
            self.plan(
                in_ms,
                Action::Fire {
                    target: target.to_owned(),
                    generation,
                },
            );
        }
    }

    /// Asks the scheduler to hold a deadline no longer.
    pub(crate) fn cancel(&mut self, target: &str) {
        self.broker
            .scheduler
            .cancel((&mut self.random, &self.faults), target);
    }

    /// The scheduler's moment: publishes a deadline that is due.
    pub(crate) fn fire(&mut self, target: String, generation: u64) {
        let fired =
            self.broker
                .scheduler
                .fire((&mut self.random, &self.faults), &target, generation);
        match fired {
            Some(armed) => {
                let publication = Publication {
                    subject: target,
                    id: None,
                    body: armed.body,
                    original: None,
                };
                self.publish(StreamKind::Timers, publication);
            }
            None => self.note(|| format!("nothing fires on {target}")),
        }
    }
}

/// A virtual time as the clocks of the processes show it.
pub(crate) fn instant(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(BEGINNING_UNIX_MILLIS).plus_millis(millis)
}
