//! The ports of a process in the simulated world: the handlers that run on them are the services' own.
//!
//! Bugs of the event store, the publisher and the clock are injected here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use concord_events::Aggregate;
use concord_events::dead_letter::header as dead;
use concord_events::subject::SystemSubject;
use concord_events::topology::{ConsumerKind, Layout, StreamKind};
use concord_runtime::broker::inbox_progress::Progress;
use concord_runtime::broker::{Operation, Unavailable};
use concord_runtime::codec::message_lookup::{SearchStart, Stored as FoundMessage};
use concord_runtime::codec::{self, StoredMessage, read_message};
use concord_runtime::event_store::Error;
use concord_runtime::ports::{
    ArmedDeadline, Clock, DeadLetters, Headers, Inboxes, MessageLookup, Ports, Preferences, Timers,
};
use concord_wire::subject::{Lane, Service};
use concord_wire::{AgentId, Dialect, Envelope, Timestamp, Token, header};

use crate::broker::Publication;
use crate::faults::InjectedBug;
use crate::network::{Connection, Reply, Request, unanswered};
use crate::world::instant;

mod event_store;
mod publisher;

/// How much earlier than the world's clock the injected bug lets deadlines fire.
const EARLY_MS: u64 = 100;

/// What one process needs of the world.
#[derive(Clone)]
pub(crate) struct SimPorts {
    pub(crate) connection: Connection,
    service: Service,
    layout: Arc<Layout>,
    /// The unique text that the next request of an operator is given, so that the checks know it again.
    next_unique: Arc<Mutex<Option<String>>>,
}

impl SimPorts {
    pub(crate) fn new(service: Service, connection: Connection) -> Self {
        Self {
            service,
            connection,
            layout: Arc::new(Layout::default()),
            next_unique: Arc::default(),
        }
    }

    /// The next id that a handler asks for is made of this text.
    pub(crate) fn set_next_unique(&self, text: &str) {
        let mut next = self
            .next_unique
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *next = Some(text.to_owned());
    }
}

impl DeadLetters for SimPorts {
    fn has_room_for(&self, _: usize) -> bool {
        true
    }

    async fn keep(&self, subject: String, headers: Headers, body: Bytes) -> Result<(), Error> {
        let text = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        let stream = text(dead::STREAM).unwrap_or_default();
        let kind = StreamKind::ALL
            .iter()
            .find(|kind| self.layout.stream_name(**kind) == stream);
        let sequence = text(dead::SEQUENCE).and_then(|sequence| sequence.parse().ok());
        let pointer = text(dead::POINTER).unwrap_or_default();
        let publication = Publication {
            subject,
            id: text(header::MESSAGE_ID),
            body: body.as_ref().into(),
            original: kind
                .zip(sequence)
                .map(|(kind, sequence)| (*kind, sequence, pointer)),
        };
        let request = Request::Publish {
            kind: StreamKind::Dead,
            publication,
        };
        self.connection
            .ask(Operation::StoreDeadLetter, request)
            .await
            .map(|_| ())
    }
}

impl Clock for SimPorts {
    fn now(&self) -> Timestamp {
        let now = self.connection.now();
        let is_early = self.service == Service::EscalationTimer
            && self.connection.injected_bug() == Some(InjectedBug::EarlyFire);
        if is_early {
            now.plus_millis(EARLY_MS)
        } else {
            now
        }
    }

    async fn sleep(&self, time: Duration) {
        self.connection.sleep(time).await;
    }
}

impl Timers for SimPorts {
    async fn arm(&self, deadline: &ArmedDeadline) -> Result<(), Error> {
        let request = Request::Arm {
            target: self.target(deadline.aggregate, &deadline.id, &deadline.name),
            due: deadline.due,
            body: serde_json::to_vec(deadline)?.into(),
        };
        let asked = self.connection.ask(Operation::ScheduleDeadline, request);
        asked.await.map(|_| ())
    }

    async fn cancel(&self, aggregate: Aggregate, id: &Token, name: &Token) -> Result<(), Error> {
        let target = self.target(aggregate, id, name);
        let asked = self
            .connection
            .ask(Operation::ScheduleDeadline, Request::Cancel { target });
        asked.await.map(|_| ())
    }

    /// Nobody lists deadlines in this world.
    async fn armed(&self, _: usize) -> Result<Vec<ArmedDeadline>, Error> {
        Err(unanswered(Operation::ListDeadlines))
    }
}

impl SimPorts {
    /// The subject on which the scheduler publishes a deadline.
    fn target(&self, aggregate: Aggregate, id: &Token, name: &Token) -> String {
        self.layout.subjects.build(&SystemSubject::TimerDue {
            aggregate,
            id: id.clone(),
            name: name.clone(),
        })
    }
}

impl MessageLookup for SimPorts {
    async fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        start: SearchStart,
    ) -> Result<Option<FoundMessage>, Unavailable> {
        let request = Request::NextMessage {
            kind: StreamKind::of_lane(lane),
            filter: filter.to_owned(),
            start,
        };
        let reply = self.connection.send(request).await;
        let reply = reply.ok_or_else(|| Operation::FindMessage.failed("no answer came in time"))?;
        let Reply::Found(Some(found)) = reply else {
            return Ok(None);
        };
        let message = StoredMessage {
            subject: &found.publication.subject,
            headers: None,
            body: &found.publication.body,
            sequence: found.sequence,
            stored_at: instant(found.at),
        };
        let as_sent = async |envelope, _| Ok(envelope);
        let read = read_message(self.subjects(), &message, as_sent);
        Ok(Some(FoundMessage {
            sequence: found.sequence,
            stored_at: message.stored_at,
            envelope: read.await.ok(),
        }))
    }

    /// Nobody keeps a payload apart from its message in this world.
    async fn with_payload(&self, envelope: Envelope) -> Result<Envelope, codec::Error> {
        Ok(envelope)
    }
}

impl Inboxes for SimPorts {
    async fn progress(&self, inbox: ConsumerKind) -> Result<Progress, Unavailable> {
        if self.connection.injected_bug() == Some(InjectedBug::DeadlineUnread) {
            return Ok(Progress::all());
        }
        match self.connection.send(Request::Progress { inbox }).await {
            Some(Reply::Progress(progress)) => Ok(progress),
            _ => Err(Operation::DescribeConsumer.failed("no answer came in time")),
        }
    }
}

/// No card of this world names a dialect.
impl Preferences for SimPorts {
    fn dialect_by_card(&self, _: &AgentId) -> Option<Dialect> {
        None
    }

    fn wrote_in(&self, _: &AgentId, _: Dialect) {}
}

impl Ports for SimPorts {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn unique_id(&self) -> String {
        let next = self
            .next_unique
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        next.unwrap_or_else(|| format!("unique {}", self.connection.world.lock().random.next()))
    }
}
