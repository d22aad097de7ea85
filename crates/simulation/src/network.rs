//! Requests to the broker and their answers: each is an await point at which the world decides what happens.
//!
//! A request travels, is done, and its answer travels back; each part may be slow or lost, and the process may be killed
//! during either. A request that is under way when its process dies still arrives: the broker does not know.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_events::topology::{ConsumerKind, StreamKind};
use concord_runtime::Appended;
use concord_runtime::broker::Operation;
use concord_runtime::broker::inbox_progress::Progress;
use concord_runtime::codec::message_lookup::SearchStart;
use concord_runtime::event_store::Error;
use concord_wire::{Timestamp, subject::SubjectSpace};

use crate::broker::{Publication, Receipt, Stored};
use crate::executor::Incarnation;
use crate::faults::InjectedBug;
use crate::world::{Action, Shared, World};

/// How long a process waits for an answer.
const PATIENCE_MS: u64 = 5_000;

/// What is asked of the broker.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// Store an event, if the last sequence under `lock` is still `expected`; none asks for no lock.
    Append {
        lock: String,
        expected: Option<u64>,
        event: Publication,
    },
    /// Events under `lock` after a sequence.
    Events {
        lock: String,
        after: u64,
        leader: bool,
    },
    /// Store a message.
    Publish {
        kind: StreamKind,
        publication: Publication,
    },
    /// Hold a deadline.
    Arm {
        target: String,
        due: Timestamp,
        body: Arc<[u8]>,
    },
    /// Hold a deadline no longer.
    Cancel { target: String },
    /// A delivery is done with.
    Acknowledge { consumer: usize, sequence: u64 },
    /// A delivery is to be made again.
    PutBack {
        consumer: usize,
        sequence: u64,
        wait_ms: u64,
    },
    /// The event at a sequence.
    At { sequence: u64 },
    /// All events from a sequence on.
    Scan { first: u64 },
    /// How far an inbox is read.
    Progress { inbox: ConsumerKind },
    /// The first message of a stream from there on whose subject matches the filter.
    NextMessage {
        kind: StreamKind,
        filter: String,
        start: SearchStart,
    },
}

/// What the broker answers.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Appended(Appended),
    /// Events, and the sequence of the last message under their lock, an event or not.
    Events(Vec<(u64, String, Arc<[u8]>)>, u64),
    Published(Receipt),
    Found(Option<Stored>),
    Progress(Progress),
    /// What another process says that was asked.
    Answered(Bytes),
    Done,
}

/// Where an answer is waited for.
pub(crate) type Cell = crate::oneshot::Cell<Reply>;

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) request: Request,
    pub(crate) cell: Cell,
}

/// The answer to a request, when it comes.
pub(crate) type Answer = crate::oneshot::Answer<Reply>;

/// One process' connection to the broker.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) world: Shared,
    pub(crate) incarnation: Incarnation,
}

impl Connection {
    /// The present, as the process sees it.
    pub(crate) fn now(&self) -> Timestamp {
        self.world.lock().clock()
    }

    /// The injected bug, if any.
    pub(crate) fn injected_bug(&self) -> Option<InjectedBug> {
        self.world.lock().injected_bug
    }

    pub(crate) fn subjects(&self) -> SubjectSpace {
        self.world.lock().subjects().clone()
    }

    /// Sends a request. It is on its way at once, whether or not the answer is waited for.
    pub(crate) fn send(&self, request: Request) -> Answer {
        let cell = Cell::default();
        let mut world = self.world.lock();
        let lost = world.faults.lost_request;
        if world.random.chance(lost) {
            world.counts.lost_requests += 1;
        } else {
            let delay = world.delay();
            world.plan(
                delay,
                Action::Arrive(Arrival {
                    request,
                    cell: cell.clone(),
                }),
            );
        }
        let crash = world.faults.crash;
        if world.random.chance(crash) {
            // Somewhere between now and some time after the answer.
            let there_and_back = 3 * world.faults.delay_ms_max;
            let in_ms = world.random.between(0, there_and_back);
            world.plan(in_ms, Action::Crash(self.incarnation));
        }
        world.plan(PATIENCE_MS, Action::GiveUp(cell.clone()));
        crate::oneshot::Answer(cell)
    }

    /// Waits until this time is over.
    pub(crate) async fn sleep(&self, time: Duration) {
        let cell = Cell::default();
        let wait_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let action = Action::GiveUp(cell.clone());
        self.world.lock().plan(wait_ms, action);
        let ended: Option<Reply> = crate::oneshot::Answer(cell).await;
        debug_assert!(ended.is_none(), "the end of a wait brings no answer");
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn ask(&self, operation: Operation, request: Request) -> Result<Reply, Error> {
        self.send(request)
            .await
            .ok_or_else(|| unanswered(operation))
    }
}

/// The error of a request whose answer did not come.
pub(crate) fn unanswered(operation: Operation) -> Error {
    operation.failed("no answer came in time").into()
}

impl World {
    /// A request has arrived: it waits while the broker is away, else it is done and its answer sent.
    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        let away = self.away_ms();
        if away > 0 {
            let after = self.delay();
            self.plan(away + after, Action::Arrive(arrival));
            return;
        }
        let reply = self.serve(arrival.request);
        let lost = self.faults.lost_answer;
        if self.random.chance(lost) {
            self.counts.lost_answers += 1;
            return;
        }
        let delay = self.delay();
        self.plan(delay, Action::Answer(arrival.cell, reply));
    }

    fn serve(&mut self, request: Request) -> Reply {
        match request {
            Request::Append {
                lock,
                expected,
                event,
            } => self.append(&lock, expected, event),
            Request::Events {
                lock,
                after,
                leader,
            } => self.events(&lock, after, leader),
            Request::Publish { kind, publication } => {
                let receipt = self.publish(kind, publication);
                self.counts.repeated += u64::from(receipt.duplicate);
                Reply::Published(receipt)
            }
            Request::Arm { target, due, body } => {
                self.arm(&target, due, body);
                Reply::Done
            }
            Request::Cancel { target } => {
                self.cancel(&target);
                Reply::Done
            }
            Request::Acknowledge { consumer, sequence } => {
                self.broker.acknowledge(consumer, sequence);
                Reply::Done
            }
            Request::PutBack {
                consumer,
                sequence,
                wait_ms,
            } => {
                self.plan(wait_ms, Action::Offer { consumer, sequence });
                Reply::Done
            }
            Request::At { sequence } => {
                let stored = self.broker.message(StreamKind::Events, sequence);
                Reply::Events(stored.map(content).into_iter().collect(), sequence)
            }
            Request::Scan { first } => self.scan(first),
            Request::Progress { inbox } => Reply::Progress(self.progress(inbox)),
            Request::NextMessage {
                kind,
                filter,
                start,
            } => Reply::Found(self.broker.next_message(kind, &filter, start).cloned()),
        }
    }

    fn append(&mut self, lock: &str, expected: Option<u64>, event: Publication) -> Reply {
        let expected = expected.filter(|_| self.injected_bug != Some(InjectedBug::MissingFence));
        let subject = event.subject.clone();
        let foreign = self.faults.foreign;
        if self.random.chance(foreign) {
            self.counts.foreign += 1;
            self.broker.disturb(self.now, lock, &subject);
        }
        let appended = self.broker.append(self.now, lock, expected, event);
        match appended {
            Appended::Stored { sequence, .. } => {
                self.announce(StreamKind::Events, sequence, &subject)
            }
            Appended::Conflict => {
                self.counts.races_lost += 1;
                self.note(|| format!("lost the race for {subject}"));
            }
        }
        Reply::Appended(appended)
    }

    fn events(&mut self, lock: &str, after: u64, leader: bool) -> Reply {
        let leader = leader && self.injected_bug != Some(InjectedBug::StaleRefusal);
        let all = self.broker.events_of_lock(lock).len();
        let mut seen = all;
        let stale = self.faults.stale_read;
        if !leader && self.random.chance(stale) {
            let lag = self.random.place(seen + 1);
            if lag > 0 {
                self.counts.stale_reads += 1;
            }
            seen -= lag;
        }
        let events = self.broker.events_of_lock(lock).iter().take(seen);
        let head = if seen == all {
            self.broker.head_of(lock)
        } else {
            events.clone().next_back().copied().unwrap_or(0)
        };
        let stored = events.filter(|sequence| **sequence > after);
        let stored =
            stored.filter_map(|sequence| self.broker.message(StreamKind::Events, *sequence));
        Reply::Events(stored.map(content).collect(), head)
    }

    fn progress(&self, inbox: ConsumerKind) -> Progress {
        let mut consumers = self.broker.consumers.iter();
        let consumer = consumers.find(|consumer| consumer.definition.kind == inbox);
        match consumer.and_then(|consumer| consumer.pending.keys().next()) {
            Some(first) => Progress {
                through: first.saturating_sub(1),
                ..Progress::default()
            },
            None => Progress::all(),
        }
    }

    fn scan(&self, first: u64) -> Reply {
        let events = self.broker.messages(StreamKind::Events);
        let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        let next = events.len() as u64 + 1;
        Reply::Events(events.iter().skip(skipped).map(content).collect(), next)
    }
}

fn content(stored: &crate::broker::Stored) -> (u64, String, Arc<[u8]>) {
    (
        stored.sequence,
        stored.publication.subject.clone(),
        Arc::clone(&stored.publication.body),
    )
}
