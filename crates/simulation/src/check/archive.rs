//! Everything that is stored, read once for all checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{
    AgentEvent, AggregateEvent, CaseEvent, DeadlineEvent, DebateEvent, DetectionEvent,
    PrecedentEvent, RequestEvent, ReviewQueueEvent, StoredEvent, TrackRecordEvent, WakeEvent,
};
use concord_wire::{MessageId, Token, dialect};

use super::Message;
use crate::agents::operators::Operation;
use crate::broker::Stored;
use crate::world::World;

/// The events of each aggregate of a kind, in order.
pub(crate) type Lives<E> = BTreeMap<Token, Vec<StoredEvent<E>>>;

/// Everything that is stored.
#[derive(Default)]
pub(crate) struct Archive {
    pub(crate) cases: Lives<CaseEvent>,
    pub(crate) detections: Lives<DetectionEvent>,
    pub(crate) debates: Lives<DebateEvent>,
    pub(crate) deadlines: Lives<DeadlineEvent>,
    pub(crate) records: Lives<TrackRecordEvent>,
    pub(crate) precedents: Lives<PrecedentEvent>,
    pub(crate) queues: Lives<ReviewQueueEvent>,
    pub(crate) agents: Lives<AgentEvent>,
    pub(crate) requests: Lives<RequestEvent>,
    pub(crate) wakes: Lives<WakeEvent>,
    /// Events by `event_id`: what kind of aggregate, where, and the bytes.
    pub(crate) facts: BTreeMap<MessageId, (Aggregate, u64, Arc<[u8]>)>,
    /// When each event was stored, by sequence.
    pub(crate) stored_at: BTreeMap<u64, u64>,
    pub(crate) messages: Vec<Message>,
    /// Places in [`Self::messages`], by `message_id`.
    pub(crate) by_id: BTreeMap<MessageId, Vec<usize>>,
    /// Sequences of messages that are kept among the dead, with the place that was wrong in them.
    pub(crate) dead: BTreeMap<u64, String>,
    /// What operators have asked for, by the cause of what it led to.
    pub(crate) operated: BTreeMap<MessageId, Arc<Operation>>,
}

impl Archive {
    pub(crate) fn read(world: &World) -> Self {
        let operated = world
            .operated
            .iter()
            .map(|operation| (operation.id(), Arc::clone(operation)));
        let mut archive = Self {
            operated: operated.collect(),
            ..Self::default()
        };
        for stored in world.broker.messages(StreamKind::Events) {
            archive.fact(world, stored);
        }
        for stored in world.broker.messages(StreamKind::Messages) {
            archive.message(world, stored);
        }
        for stored in world.broker.messages(StreamKind::Dead) {
            if let Some((StreamKind::Messages, sequence, pointer)) = &stored.publication.original {
                archive.dead.insert(*sequence, pointer.clone());
            }
        }
        archive
    }

    fn fact(&mut self, world: &World, stored: &Stored) {
        let Ok(SystemSubject::Event { aggregate, .. }) =
            world.subjects().parse(&stored.publication.subject)
        else {
            return;
        };
        let bytes = &stored.publication.body;
        if is_acknowledgement(bytes) {
            return;
        }
        let id = match aggregate {
            Aggregate::Case => keep(&mut self.cases, stored),
            Aggregate::Detection => keep(&mut self.detections, stored),
            Aggregate::Debate => keep(&mut self.debates, stored),
            Aggregate::Deadline => keep(&mut self.deadlines, stored),
            Aggregate::TrackRecord => keep(&mut self.records, stored),
            Aggregate::Precedent => keep(&mut self.precedents, stored),
            Aggregate::ReviewQueue => keep(&mut self.queues, stored),
            Aggregate::Agent => keep(&mut self.agents, stored),
            Aggregate::Request => keep(&mut self.requests, stored),
            Aggregate::Wake => keep(&mut self.wakes, stored),
        };
        self.stored_at.insert(stored.sequence, stored.at);
        if let Some(id) = id {
            self.facts
                .insert(id, (aggregate, stored.sequence, Arc::clone(bytes)));
        }
    }

    fn message(&mut self, world: &World, stored: &Stored) {
        let subject = world.subjects().parse(&stored.publication.subject).ok();
        let body = Arc::clone(&stored.publication.body);
        let envelope = subject
            .as_ref()
            .and_then(|subject| dialect::read(&body, None, subject).ok())
            .map(|(read, _)| read);
        if let Some(envelope) = &envelope {
            self.by_id
                .entry(envelope.message_id.clone())
                .or_default()
                .push(self.messages.len());
        }
        self.messages.push(Message {
            sequence: stored.sequence,
            at: stored.at,
            subject,
            envelope,
            body,
        });
    }

    /// The messages of this id.
    pub(crate) fn said_under(&self, id: &MessageId) -> impl Iterator<Item = &Message> {
        self.by_id
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|place| self.messages.get(*place))
    }

    /// When the first event of an aggregate was stored.
    pub(crate) fn born<E: AggregateEvent>(&self, lives: &Lives<E>, id: &Token) -> Option<u64> {
        self.stored_at
            .get(&lives.get(id)?.first()?.sequence)
            .copied()
    }

    /// Ids of the aggregates that there are.
    pub(crate) fn opened(&self) -> BTreeSet<&Token> {
        self.cases.keys().chain(self.debates.keys()).collect()
    }
}

fn keep<E: AggregateEvent>(lives: &mut Lives<E>, stored: &Stored) -> Option<MessageId> {
    // What cannot be read is reported by the auditor.
    let record = StoredEvent::<E>::decode(&stored.publication.body, stored.sequence).ok()?;
    let id = record.meta.event_id.clone();
    lives
        .entry(record.meta.id.clone())
        .or_default()
        .push(record);
    Some(id)
}
