//! The ports of a replica of the agent adapter in the world of one hosted agent.
//!
//! Nothing is stored as an event here. Bugs of the publisher and the clock are injected here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concord_events::topology::{ConsumerKind, Layout};
use concord_events::{Aggregate, AggregateEvent, StoredEvent};
use concord_runtime::broker::inbox_progress::Progress;
use concord_runtime::broker::{Operation, Unavailable};
use concord_runtime::codec;
use concord_runtime::codec::message_lookup::{SearchStart, Stored};
use concord_runtime::event_store::Error;
use concord_runtime::ports::{
    ArmedDeadline, Clock, DeadLetters, Headers, Inboxes, MessageLookup, Ports, Preferences, Timers,
};
use concord_runtime::{
    Appended, Consistency, EventStore, LastEvent, Loaded, Publisher, ScannedEvent, Since, Trace,
};
use concord_wire::subject::Lane;
use concord_wire::{AgentId, Dialect, Envelope, MessageId, Timestamp, Token};

use super::world::{Action, Cell, Reply, Request, Shared};
use crate::executor::Incarnation;
use crate::faults::InjectedBug;
use crate::network::unanswered;
use crate::oneshot::Answer;

/// How long a replica waits for the broker's answer.
const PATIENCE_MS: u64 = 5_000;
/// How far the clock is behind by the injected bug, so that a request's time seems not to be over.
const BEHIND_MS: u64 = 2_000;

/// What one replica needs of the world.
#[derive(Clone)]
pub(crate) struct HostedPorts {
    pub(crate) incarnation: Incarnation,
    pub(crate) world: Shared,
    layout: Arc<Layout>,
}

impl HostedPorts {
    pub(crate) fn new(incarnation: Incarnation, world: Shared) -> Self {
        Self {
            incarnation,
            world,
            layout: Arc::new(Layout::default()),
        }
    }

    /// Asks something of the broker. None when no answer comes.
    pub(crate) async fn send(&self, request: Request) -> Option<Reply> {
        let cell = Cell::default();
        {
            let mut world = self.world.lock();
            let lost = world.faults.lost_request;
            if world.random.chance(lost) {
                world.counts.lost_requests += 1;
            } else {
                let delay = world.delay();
                world.plan(delay, Action::Arrive(request, cell.clone()));
            }
            let there_and_back = 3 * world.faults.delay_ms_max;
            world.may_crash(self.incarnation, there_and_back);
            world.plan(PATIENCE_MS, Action::GiveUp(cell.clone()));
        }
        Answer(cell).await
    }

    /// An injected bug: a message has another id in each process, so that it is stored beside what another process said.
    fn with_own_id(&self, envelope: &Envelope) -> Envelope {
        let Incarnation { replica, number } = self.incarnation;
        let id = MessageId::new(format!("{}-{replica}-{number}", envelope.message_id));
        let message_id = id.unwrap_or_else(|_| envelope.message_id.clone());
        Envelope {
            message_id,
            ..envelope.clone()
        }
    }
}

impl Clock for HostedPorts {
    fn now(&self) -> Timestamp {
        let world = self.world.lock();
        match world.injected_bug {
            Some(InjectedBug::SaidTooLate) => world.clock_behind(BEHIND_MS),
            _ => world.clock(),
        }
    }

    async fn sleep(&self, time: Duration) {
        let cell = Cell::default();
        {
            let for_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let mut world = self.world.lock();
            world.may_crash(self.incarnation, for_ms);
            world.plan(for_ms, Action::GiveUp(cell.clone()));
        }
        Answer(cell).await;
    }
}

impl Publisher for HostedPorts {
    async fn publish_first(&self, envelope: &Envelope, _: Option<&Trace>) -> Result<bool, Error> {
        let publication = {
            let mut world = self.world.lock();
            let envelope = match world.injected_bug {
                Some(InjectedBug::AnsweredTwice) => self.with_own_id(envelope),
                _ => envelope.clone(),
            };
            world.published(self.incarnation, envelope)
        };
        match self.send(Request::Publish(Box::new(publication))).await {
            Some(Reply::Published { first }) => Ok(first),
            _ => Err(unanswered(Operation::StoreMessage)),
        }
    }

    /// No handler of this world publishes so.
    async fn publish(&self, _: &[Envelope], _: Option<&Trace>) -> Result<(), Error> {
        Err(unanswered(Operation::StoreMessage))
    }

    /// No handler of this world publishes so.
    async fn publish_in(&self, _: Dialect, _: &Envelope, _: Option<&Trace>) -> Result<(), Error> {
        Err(unanswered(Operation::StoreMessage))
    }
}

impl MessageLookup for HostedPorts {
    async fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        start: SearchStart,
    ) -> Result<Option<Stored>, Unavailable> {
        let request = Request::NextMessage {
            lane,
            filter: filter.to_owned(),
            start,
        };
        match self.send(request).await {
            Some(Reply::Found(found)) => Ok(found.map(|found| *found)),
            _ => Err(Operation::FindMessage.failed("no answer came in time")),
        }
    }

    /// Nobody keeps a payload apart from its message in this world.
    async fn with_payload(&self, envelope: Envelope) -> Result<Envelope, codec::Error> {
        Ok(envelope)
    }
}

/// Nothing of a message to a hosted agent is given up while the world is well again in time.
impl DeadLetters for HostedPorts {
    fn has_room_for(&self, _: usize) -> bool {
        true
    }

    async fn keep(&self, subject: String, _: Headers, _: Bytes) -> Result<(), Error> {
        self.world.lock().give_up(&subject);
        Ok(())
    }
}

/// Loops are not simulated here, and no message is in a case: no event is read or stored.
impl EventStore for HostedPorts {
    async fn load<E: AggregateEvent>(
        &self,
        _: &Token,
        _: Since,
        _: Consistency,
    ) -> Result<Loaded<E>, Error> {
        Ok(Loaded::nothing(0))
    }

    async fn append<E: AggregateEvent>(
        &self,
        _: &StoredEvent<E>,
        _: u64,
        _: Option<&Trace>,
    ) -> Result<Appended, Error> {
        Err(unanswered(Operation::StoreEvent))
    }

    async fn last(
        &self,
        _: Aggregate,
        _: &Token,
        _: Consistency,
    ) -> Result<Option<LastEvent>, Error> {
        Ok(None)
    }

    async fn at<E: AggregateEvent>(&self, _: u64) -> Result<StoredEvent<E>, Error> {
        Err(unanswered(Operation::ReadEvent))
    }

    async fn last_sequence(&self) -> Result<u64, Error> {
        Ok(0)
    }

    async fn ids(&self, _: Aggregate) -> Result<Vec<Token>, Error> {
        Ok(Vec::new())
    }

    async fn ids_by(
        &self,
        _: Aggregate,
        _: &'static str,
        next: &mut u64,
        end: u64,
    ) -> Result<Vec<Token>, Error> {
        *next = end;
        Ok(Vec::new())
    }

    async fn scan(&self, _: &mut u64, _: impl FnMut(ScannedEvent) + Send) -> Result<(), Error> {
        Ok(())
    }
}

/// The adapter waits for no deadline of an aggregate.
impl Timers for HostedPorts {
    async fn arm(&self, _: &ArmedDeadline) -> Result<(), Error> {
        Err(unanswered(Operation::ScheduleDeadline))
    }

    async fn cancel(&self, _: Aggregate, _: &Token, _: &Token) -> Result<(), Error> {
        Err(unanswered(Operation::ScheduleDeadline))
    }

    async fn armed(&self, _: usize) -> Result<Vec<ArmedDeadline>, Error> {
        Err(unanswered(Operation::ListDeadlines))
    }
}

/// The adapter applies no deadline of an aggregate.
impl Inboxes for HostedPorts {
    async fn progress(&self, _: ConsumerKind) -> Result<Progress, Unavailable> {
        Err(Operation::DescribeConsumer.failed("no deadline is applied"))
    }
}

/// No card of this world names a dialect.
impl Preferences for HostedPorts {
    fn dialect_by_card(&self, _: &AgentId) -> Option<Dialect> {
        None
    }

    fn wrote_in(&self, _: &AgentId, _: Dialect) {}
}

impl Ports for HostedPorts {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn unique_id(&self) -> String {
        format!("unique {}", self.world.lock().random.next())
    }
}
