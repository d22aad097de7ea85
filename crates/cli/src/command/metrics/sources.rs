//! The inputs of the metrics, read from the streams in the order of time: the messages of both lanes, and the decisions whom
//! messages wake.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use concord_domain::coordination_metrics::{TrackedMessage, leads_by_card};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{AgentEvent, StoredEvent, WakeDecided, WakeEvent};
use concord_runtime::Broker;
use concord_wire::header::DIALECT;
use concord_wire::payload::Card;
use concord_wire::subject::Lane;
use concord_wire::{AgentId, CaseId, Dialect, Timestamp, dialect};
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all};

use crate::shared::failure::Failure;
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// How long a reader waits for the next message that the broker has.
const PATIENCE: Duration = Duration::from_secs(30);

/// An input of the metrics.
pub(super) enum Input {
    Message(Box<TrackedMessage>),
    Wake(Box<WakeDecided>),
    /// A message that is no envelope.
    Unreadable,
    /// An event that this build does not know.
    Unknown,
}

/// A stream, with its next message.
struct Source {
    kind: StreamKind,
    messages: BoxStream<'static, Result<StreamMessage, Failure>>,
    left: u64,
    head: VecDeque<StreamMessage>,
}

/// A message, with the stream that it comes from.
type Tagged = (StreamKind, Result<StreamMessage, Failure>);

/// Reads several streams as one.
pub(super) struct Reader {
    broker: Broker,
    sources: Vec<Source>,
    live: Option<SelectAll<BoxStream<'static, Tagged>>>,
}

impl Reader {
    pub(super) async fn open(
        broker: &Broker,
        case: Option<&CaseId>,
        since: Option<Timestamp>,
    ) -> Result<Self, Failure> {
        let subjects = broker.subjects();
        let lane = |kind: StreamKind, lane| match case {
            Some(case) => Scope::of(kind, subjects.transcript(lane, case)),
            None => Scope::all(kind),
        };
        let events = match case {
            Some(case) => subjects.events_of(Aggregate::Wake, &case.token()),
            None => subjects.events_of_kind(Aggregate::Wake),
        };
        // A message comes before the decision about it, also when both were stored in the same millisecond.
        let scopes = [
            (StreamKind::Urgent, lane(StreamKind::Urgent, Lane::Urgent)),
            (
                StreamKind::Messages,
                lane(StreamKind::Messages, Lane::Normal),
            ),
            (StreamKind::Events, Scope::of(StreamKind::Events, events)),
        ];
        let mut sources = Vec::new();
        for (kind, scope) in scopes {
            let (left, messages) = stream_reader::follow(broker, &scope.since(since)).await?;
            sources.push(Source {
                kind,
                messages: messages.boxed(),
                left,
                head: VecDeque::new(),
            });
        }
        Ok(Self {
            broker: broker.clone(),
            sources,
            live: None,
        })
    }

    /// The next input that was stored when reading began; none when all of them are read.
    pub(super) async fn past(&mut self) -> Result<Option<Input>, Failure> {
        for source in &mut self.sources {
            source.fill(&self.broker).await?;
        }
        let waiting = self
            .sources
            .iter_mut()
            .filter(|source| !source.head.is_empty());
        let first = waiting.min_by_key(|source| source.head.front().map(|stored| stored.at));
        let Some(source) = first else { return Ok(None) };
        let kind = source.kind;
        Ok(source
            .head
            .pop_front()
            .map(|stored| input(&self.broker, kind, &stored)))
    }

    /// The next input that is stored from then on.
    pub(super) async fn next(&mut self) -> Result<Input, Failure> {
        let sources = std::mem::take(&mut self.sources);
        let live = self.live.get_or_insert_with(|| {
            let tagged = |source: Source| {
                let Source { kind, messages, .. } = source;
                messages.map(move |stored| (kind, stored)).boxed()
            };
            select_all(sources.into_iter().map(tagged))
        });
        match live.next().await {
            Some((kind, stored)) => Ok(input(&self.broker, kind, &stored?)),
            None => Err(Failure::unavailable(
                "the broker has gone; see `concord doctor`",
            )),
        }
    }
}

impl Source {
    async fn fill(&mut self, broker: &Broker) -> Result<(), Failure> {
        if self.left == 0 || !self.head.is_empty() {
            return Ok(());
        }
        let Ok(next) = tokio::time::timeout(PATIENCE, self.messages.next()).await else {
            let name = broker.layout.stream_name(self.kind);
            return Err(Failure::failed(format!(
                "the broker does not go on sending the stream {name}; try again"
            )));
        };
        self.left = if next.is_some() { self.left - 1 } else { 0 };
        self.head.extend(next.transpose()?);
        Ok(())
    }
}

fn input(broker: &Broker, kind: StreamKind, stored: &StreamMessage) -> Input {
    if kind == StreamKind::Events {
        let record = StoredEvent::<WakeEvent>::decode(&stored.payload, stored.sequence);
        return match record {
            Ok(StoredEvent {
                event: WakeEvent::Decided(decided),
                ..
            }) => Input::Wake(Box::new(decided)),
            _ => Input::Unknown,
        };
    }
    let subject = broker.subjects().parse(&stored.subject).ok();
    let declared = Dialect::parse(stored.header(DIALECT));
    let envelope =
        subject.and_then(|subject| dialect::read(&stored.payload, declared, &subject).ok());
    let envelope = envelope.map(|(envelope, _)| envelope.completed(stored.sequence, stored.at));
    envelope.map_or(Input::Unreadable, |envelope| {
        Input::Message(Box::new(TrackedMessage::of(&envelope, stored.at)))
    })
}

/// The agents whose latest cards say that they lead.
pub(super) async fn leads_on_the_register(broker: &Broker) -> Result<BTreeSet<AgentId>, Failure> {
    let mut cards: BTreeMap<AgentId, Card> = BTreeMap::new();
    let scope = Scope::of(
        StreamKind::Events,
        broker
            .subjects()
            .event_of_kind(Aggregate::Agent, "registered"),
    );
    stream_reader::for_each(broker, &scope, "reading the register", |stored| {
        if let Ok(record) = StoredEvent::<AgentEvent>::decode(&stored.payload, stored.sequence)
            && let AgentEvent::Registered(registered) = record.event
        {
            cards.insert(registered.card.agent_id.clone(), registered.card);
        }
        Ok(())
    })
    .await?;
    Ok(leads_by_card(cards.values()))
}
