//! The broker: streams with sequences, deduplication and the optimistic lock, and durable consumers.
//!
//! The rules are those of nats-server on a stream with one copy, as far as Concord depends on them: the expected
//! sequence is compared first, and only then is a repeated `Nats-Msg-Id` recognised.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use concord_events::topology::{
    ConsumerDefinition, ConsumerKind, Layout, StreamDefinition, StreamKind,
};
use concord_events::{Deadline, EventMeta};
use concord_runtime::Appended;
use concord_runtime::codec::message_lookup::SearchStart;
use concord_wire::subject::Service;

use crate::scheduler::Scheduler;
use crate::world::instant;

/// What is published.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(crate) subject: String,
    /// `Nats-Msg-Id`; a sender may leave it out.
    pub(crate) id: Option<String>,
    pub(crate) body: Arc<[u8]>,
    /// Headers of a dead letter: the stream and sequence of the original, and the place that was wrong in it.
    pub(crate) original: Option<(StreamKind, u64, String)>,
}

/// What is stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) sequence: u64,
    /// When, in virtual milliseconds.
    pub(crate) at: u64,
    pub(crate) publication: Publication,
}

/// The answer to a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) sequence: u64,
    /// It had been stored before, under the same id.
    pub(crate) duplicate: bool,
}

struct Stream {
    definition: StreamDefinition,
    messages: Vec<Stored>,
    /// Where and when an id was stored last.
    ids: HashMap<String, (u64, u64)>,
}

/// A delivery that is not yet acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pending {
    /// Which delivery is the current one; an older one's deadline means nothing.
    pub(crate) lease: u32,
}

pub(crate) struct Consumer {
    pub(crate) definition: ConsumerDefinition,
    filter: Vec<String>,
    pub(crate) pending: BTreeMap<u64, Pending>,
}

/// The streams and consumers of one installation.
pub(crate) struct Broker {
    pub(crate) layout: Layout,
    streams: BTreeMap<StreamKind, Stream>,
    pub(crate) consumers: Vec<Consumer>,
    /// Sequences of the events of each aggregate, by the wildcard subject that its lock is taken on.
    events: BTreeMap<String, Vec<u64>>,
    /// The last message under the lock of each aggregate that was no event.
    foreign: BTreeMap<String, u64>,
    /// The last event of each aggregate that has deadlines open, with these.
    open: BTreeMap<String, (u64, Vec<Deadline>)>,
    pub(crate) scheduler: Scheduler,
}

impl Broker {
    pub(crate) fn new() -> Self {
        let layout = Layout::default();
        let stream = |kind: &StreamKind| {
            (
                *kind,
                Stream {
                    definition: layout.stream(*kind),
                    messages: Vec::new(),
                    ids: HashMap::new(),
                },
            )
        };
        let streams = StreamKind::ALL.iter().map(stream).collect();
        let consumer = |definition: ConsumerDefinition| {
            let filter = definition.filter.split('.').map(str::to_owned).collect();
            Consumer {
                definition,
                filter,
                pending: BTreeMap::new(),
            }
        };
        // Of the agent adapter its inbox, and what decides whom messages wake; people outside are notified of nothing here.
        let of_adapter = [
            ConsumerKind::Wake,
            ConsumerKind::Effects(Service::AgentAdapter),
            ConsumerKind::Inbox(Service::AgentAdapter),
            ConsumerKind::UrgentInbox(Service::AgentAdapter),
        ];
        let of_adapter = of_adapter
            .into_iter()
            .flat_map(|kind| layout.consumers_of(kind));
        let consumers = layout
            .consumers()
            .into_iter()
            .chain(of_adapter)
            .map(consumer)
            .collect();
        Self {
            layout,
            streams,
            consumers,
            events: BTreeMap::new(),
            foreign: BTreeMap::new(),
            open: BTreeMap::new(),
            scheduler: Scheduler::default(),
        }
    }

    /// Everything a stream holds, in order.
    pub(crate) fn messages(&self, kind: StreamKind) -> &[Stored] {
        self.streams
            .get(&kind)
            .map_or(&[], |stream| &stream.messages)
    }

    /// One message of a stream.
    pub(crate) fn message(&self, kind: StreamKind, sequence: u64) -> Option<&Stored> {
        let place = usize::try_from(sequence.checked_sub(1)?).ok()?;
        self.messages(kind).get(place)
    }

    /// The events of the aggregate that `lock` is the wildcard subject of.
    pub(crate) fn events_of_lock(&self, lock: &str) -> &[u64] {
        self.events.get(lock).map_or(&[], Vec::as_slice)
    }

    /// Sequence of the last message under `lock`, an event or not; 0 where there is none.
    pub(crate) fn head_of(&self, lock: &str) -> u64 {
        let last = self.events_of_lock(lock).last().copied();
        last.max(self.foreign.get(lock).copied()).unwrap_or(0)
    }

    /// Stores under `lock` what the broker has answered to somebody who named this subject as that of the reply.
    ///
    /// No consumer is given it here: that services pass over it is tested on the real broker, and here what comes of the lock.
    pub(crate) fn disturb(&mut self, now: u64, lock: &str, subject: &str) {
        let body = br#"{"stream":"CONCORD_MESSAGES","seq":1}"#.as_slice().into();
        let publication = Publication {
            subject: subject.to_owned(),
            id: None,
            body,
            original: None,
        };
        let receipt = self.publish(now, StreamKind::Events, publication);
        self.foreign.insert(lock.to_owned(), receipt.sequence);
    }

    /// The last event of every aggregate that has deadlines open, with these.
    pub(crate) fn open_deadlines(&self) -> impl Iterator<Item = (&Stored, &[Deadline])> {
        let stored = |sequence: u64| self.message(StreamKind::Events, sequence);
        self.open
            .values()
            .filter_map(move |(sequence, open)| Some((stored(*sequence)?, open.as_slice())))
    }

    /// Appends an event under the lock; `expected` is none when no lock is asked for.
    pub(crate) fn append(
        &mut self,
        now: u64,
        lock: &str,
        expected: Option<u64>,
        event: Publication,
    ) -> Appended {
        if expected.is_some_and(|expected| expected != self.head_of(lock)) {
            return Appended::Conflict;
        }
        let open = EventMeta::decode(&event.body)
            .map(|meta| meta.deadlines)
            .unwrap_or_default();
        let bytes = event.body.len();
        let receipt = self.publish(now, StreamKind::Events, event);
        if receipt.duplicate {
            return Appended::Conflict;
        }
        if open.is_empty() {
            self.open.remove(lock);
        } else {
            self.open.insert(lock.to_owned(), (receipt.sequence, open));
        }
        self.events
            .entry(lock.to_owned())
            .or_default()
            .push(receipt.sequence);
        Appended::Stored {
            sequence: receipt.sequence,
            bytes,
        }
    }

    /// Stores a publication, unless its id was stored in this stream within the window.
    pub(crate) fn publish(
        &mut self,
        now: u64,
        kind: StreamKind,
        publication: Publication,
    ) -> Receipt {
        let Some(stream) = self.streams.get_mut(&kind) else {
            return Receipt {
                sequence: 0,
                duplicate: true,
            };
        };
        let window =
            u64::try_from(stream.definition.duplicate_window.as_millis()).unwrap_or(u64::MAX);
        let before = publication
            .id
            .as_ref()
            .and_then(|id| stream.ids.get(id))
            .copied();
        if let Some((sequence, at)) = before
            && now.saturating_sub(at) < window
        {
            return Receipt {
                sequence,
                duplicate: true,
            };
        }
        let sequence = stream.messages.len() as u64 + 1;
        if let Some(id) = &publication.id {
            stream.ids.insert(id.clone(), (sequence, now));
        }
        stream.messages.push(Stored {
            sequence,
            at: now,
            publication,
        });
        Receipt {
            sequence,
            duplicate: false,
        }
    }

    /// The first message of a stream from `start` on whose subject matches `filter`.
    pub(crate) fn next_message(
        &self,
        kind: StreamKind,
        filter: &str,
        start: SearchStart,
    ) -> Option<&Stored> {
        let filter: Vec<String> = filter.split('.').map(str::to_owned).collect();
        let messages = self.messages(kind);
        let skipped = messages.partition_point(|stored| match start {
            SearchStart::Sequence(sequence) => stored.sequence < sequence,
            SearchStart::Time(at) => instant(stored.at) < at,
        });
        let mut from = messages.iter().skip(skipped);
        from.find(|stored| {
            let tokens: Vec<&str> = stored.publication.subject.split('.').collect();
            matches(&filter, &tokens)
        })
    }

    /// Which consumers are given a subject of this stream.
    pub(crate) fn readers(&self, kind: StreamKind, subject: &str) -> Vec<usize> {
        let tokens: Vec<&str> = subject.split('.').collect();
        let reads = |consumer: &Consumer| {
            consumer.definition.stream_kind == kind && matches(&consumer.filter, &tokens)
        };
        (0..)
            .zip(&self.consumers)
            .filter(|(_, consumer)| reads(consumer))
            .map(|(index, _)| index)
            .collect()
    }

    /// True while a consumer has this delivery unacknowledged.
    pub(crate) fn is_pending(&self, consumer: usize, sequence: u64) -> bool {
        self.consumers
            .get(consumer)
            .is_some_and(|consumer| consumer.pending.contains_key(&sequence))
    }

    /// Ends a delivery.
    pub(crate) fn acknowledge(&mut self, consumer: usize, sequence: u64) {
        if let Some(consumer) = self.consumers.get_mut(consumer) {
            consumer.pending.remove(&sequence);
        }
    }

    /// Deliveries that are not acknowledged, for a reader.
    pub(crate) fn unacknowledged(&self) -> Vec<String> {
        let of = |consumer: &Consumer| {
            let name = consumer.definition.name.clone();
            consumer
                .pending
                .keys()
                .map(move |sequence| format!("{name} has not handled {sequence}"))
                .collect::<Vec<_>>()
        };
        self.consumers.iter().flat_map(of).collect()
    }

    /// What a consumer reads, by its place.
    pub(crate) fn kind_of(&self, consumer: usize) -> Option<(ConsumerKind, StreamKind)> {
        let definition = &self.consumers.get(consumer)?.definition;
        Some((definition.kind, definition.stream_kind))
    }
}

/// The broker's rule for filters: `*` stands for one token, `>` for one or more at the end.
pub(crate) fn matches(filter: &[String], subject: &[&str]) -> bool {
    let mut rest = subject.iter();
    for token in filter {
        match (token.as_str(), rest.next()) {
            (">", Some(_)) => return true,
            (_, None) => return false,
            ("*", Some(_)) => {}
            (expected, Some(found)) if expected == *found => {}
            _ => return false,
        }
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(id: &str) -> Publication {
        Publication {
            subject: "concord.v1.event.case.c.opened".into(),
            id: Some(id.into()),
            body: Arc::from([]),
            original: None,
        }
    }

    fn stored(sequence: u64) -> Appended {
        Appended::Stored { sequence, bytes: 0 }
    }

    #[test]
    fn the_lock_is_looked_at_before_the_id() {
        let mut broker = Broker::new();
        assert_eq!(
            broker.append(0, "case.c", Some(0), publication("a")),
            stored(1)
        );
        assert_eq!(
            broker.append(0, "case.c", Some(0), publication("b")),
            Appended::Conflict
        );
        assert_eq!(
            broker.append(0, "case.c", Some(1), publication("a")),
            Appended::Conflict
        );
        assert_eq!(
            broker.append(0, "case.c", Some(1), publication("b")),
            stored(2)
        );
        assert_eq!(
            broker.append(200_000, "case.c", Some(2), publication("b")),
            stored(3),
            "window is over"
        );
        assert_eq!(broker.events_of_lock("case.c"), [1, 2, 3]);
        broker.disturb(200_000, "case.c", "concord.v1.event.case.c.opened");
        assert_eq!(
            (
                broker.events_of_lock("case.c").len(),
                broker.head_of("case.c"),
                broker.head_of("case.d")
            ),
            (3, 4, 0)
        );
        assert_eq!(
            broker.append(200_000, "case.c", Some(3), publication("c")),
            Appended::Conflict
        );
        assert_eq!(
            broker.append(200_000, "case.c", Some(4), publication("c")),
            stored(5)
        );
    }

    #[test]
    fn consumers_are_given_what_their_filters_say() {
        let broker = Broker::new();
        let names = |kind, subject: &str| -> Vec<String> {
            let readers = broker.readers(kind, subject);
            readers
                .into_iter()
                .map(|index| broker.consumers[index].definition.name.clone())
                .collect()
        };
        assert_eq!(
            names(
                StreamKind::Messages,
                "concord.v1.msg.c.a.coordinator.finding.more"
            ),
            ["coordinator-inbox"]
        );
        assert_eq!(
            names(StreamKind::Messages, "concord.v1.msg.c.a.coordinator"),
            Vec::<String>::new()
        );
        assert_eq!(
            names(StreamKind::Events, "concord.v1.event.debate.d.resolved"),
            [
                "coordinator-facts-debate-resolved",
                "debate-facilitator-facts-debate-resolved",
                "debate-facilitator-effects-debate-resolved",
                "escalation-timer-deadlines-debate-resolved"
            ]
        );
    }
}
