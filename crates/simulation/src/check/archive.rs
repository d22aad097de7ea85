//! Everything that is stored, read once for all checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_events::{
    AggregateEvent, AlertEvent, BoardEvent, CaseEvent, CommitmentEvent, DeadlineEvent, DebateEvent,
    DetectionEvent, EventMeta, ImpactEvent, MemoryEvent, OpenerEvent, PersonEvent, PolicyEvent,
    RequestEvent, ReviewQueueEvent, StoredEvent, SynthesisEvent, TrackRecordEvent, WakeEvent,
    WatchEvent,
};
use concord_wire::{MessageId, Token, dialect};

use super::Message;
use crate::agents::operators::Operation;
use crate::broker::Stored;
use crate::world::World;

/// The events of each aggregate of a kind, in order.
pub(crate) type Histories<E> = BTreeMap<Token, Vec<StoredEvent<E>>>;

/// An event as it is stored: its sequence and its bytes.
type RawEvent = (u64, Arc<[u8]>);

/// Everything that is stored.
#[derive(Default)]
pub(crate) struct Archive {
    pub(crate) cases: Histories<CaseEvent>,
    pub(crate) detections: Histories<DetectionEvent>,
    pub(crate) debates: Histories<DebateEvent>,
    pub(crate) deadlines: Histories<DeadlineEvent>,
    pub(crate) queues: Histories<ReviewQueueEvent>,
    pub(crate) records: Histories<TrackRecordEvent>,
    pub(crate) people: Histories<PersonEvent>,
    pub(crate) policies: Histories<PolicyEvent>,
    pub(crate) openers: Histories<OpenerEvent>,
    pub(crate) requests: Histories<RequestEvent>,
    pub(crate) boards: Histories<BoardEvent>,
    pub(crate) commitments: Histories<CommitmentEvent>,
    pub(crate) analyses: Histories<ImpactEvent>,
    pub(crate) memories: Histories<MemoryEvent>,
    pub(crate) syntheses: Histories<SynthesisEvent>,
    pub(crate) alerts: Histories<AlertEvent>,
    pub(crate) watches: Histories<WatchEvent>,
    pub(crate) wakes: Histories<WakeEvent>,
    /// The events of each kind of aggregate, in order: where each is, and its bytes.
    stored: BTreeMap<Aggregate, Vec<RawEvent>>,
    /// Events by `event_id`: what kind of aggregate, where, and the bytes.
    pub(crate) events: BTreeMap<MessageId, (Aggregate, u64, Arc<[u8]>)>,
    /// When each event was stored, by sequence.
    pub(crate) stored_at: BTreeMap<u64, u64>,
    pub(crate) messages: Vec<Message>,
    /// What was said on the urgent lane.
    pub(crate) urgent: Vec<Message>,
    /// Sequences of urgent messages that are kept among the dead.
    pub(crate) dead_urgent: BTreeSet<u64>,
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
            archive.event(world, stored);
        }
        archive.cases = archive.histories();
        archive.detections = archive.histories();
        archive.debates = archive.histories();
        archive.deadlines = archive.histories();
        archive.queues = archive.histories();
        archive.records = archive.histories();
        archive.people = archive.histories();
        archive.policies = archive.histories();
        archive.openers = archive.histories();
        archive.requests = archive.histories();
        archive.boards = archive.histories();
        archive.commitments = archive.histories();
        archive.analyses = archive.histories();
        archive.memories = archive.histories();
        archive.syntheses = archive.histories();
        archive.alerts = archive.histories();
        archive.watches = archive.histories();
        archive.wakes = archive.histories();
        for stored in world.broker.messages(StreamKind::Messages) {
            archive.message(world, stored);
        }
        let urgent = world.broker.messages(StreamKind::Urgent).iter();
        archive.urgent = urgent.map(|stored| read(world, stored)).collect();
        for stored in world.broker.messages(StreamKind::Dead) {
            match &stored.publication.original {
                Some((StreamKind::Messages, sequence, pointer)) => {
                    archive.dead.insert(*sequence, pointer.clone());
                }
                Some((StreamKind::Urgent, sequence, _)) => {
                    archive.dead_urgent.insert(*sequence);
                }
                _ => {}
            }
        }
        archive
    }

    fn event(&mut self, world: &World, stored: &Stored) {
        let Ok(SystemSubject::Event { aggregate, .. }) =
            world.subjects().parse(&stored.publication.subject)
        else {
            return;
        };
        let bytes = &stored.publication.body;
        if is_acknowledgement(bytes) {
            return;
        }
        let of_kind = self.stored.entry(aggregate).or_default();
        of_kind.push((stored.sequence, Arc::clone(bytes)));
        self.stored_at.insert(stored.sequence, stored.at);
        if let Ok(meta) = EventMeta::decode(bytes) {
            self.events.insert(
                meta.event_id,
                (aggregate, stored.sequence, Arc::clone(bytes)),
            );
        }
    }

    /// The events of each aggregate of a kind. What cannot be read is reported by the auditor.
    pub(crate) fn histories<E: AggregateEvent>(&self) -> Histories<E> {
        let mut histories = Histories::<E>::new();
        for (sequence, bytes) in self.stored.get(&E::AGGREGATE).into_iter().flatten() {
            if let Ok(record) = StoredEvent::<E>::decode(bytes, *sequence) {
                let id = record.meta.id.clone();
                histories.entry(id).or_default().push(record);
            }
        }
        histories
    }

    fn message(&mut self, world: &World, stored: &Stored) {
        let message = read(world, stored);
        if let Some(envelope) = &message.envelope {
            let id = &envelope.message_id;
            for id in [id.clone(), MessageId::of_sender(id, &envelope.from_agent)] {
                self.by_id.entry(id).or_default().push(self.messages.len());
            }
        }
        self.messages.push(message);
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
    pub(crate) fn born<E: AggregateEvent>(
        &self,
        histories: &Histories<E>,
        id: &Token,
    ) -> Option<u64> {
        self.stored_at
            .get(&histories.get(id)?.first()?.sequence)
            .copied()
    }

    /// Ids of the aggregates that there are.
    pub(crate) fn opened(&self) -> BTreeSet<&Token> {
        self.cases.keys().chain(self.debates.keys()).collect()
    }
}

fn read(world: &World, stored: &Stored) -> Message {
    let subject = world.subjects().parse(&stored.publication.subject).ok();
    let body = Arc::clone(&stored.publication.body);
    let envelope = subject
        .as_ref()
        .and_then(|subject| dialect::read(&body, None, subject).ok())
        .map(|(read, _)| read);
    Message {
        sequence: stored.sequence,
        at: stored.at,
        subject,
        envelope,
        body,
    }
}
