//! Where views read what is stored: from the streams themselves, as an operator with rights on the broker, or page by page from
//! the services, as whoever asks under their name. A view does not know which.
//!
//! What must also work while the services are down (`check`, `replay`, `audit`, `doctor`) reads streams by
//! [`stream_reader`].

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::HeaderMap;
use concord_domain::Machine;
use concord_domain::machine::Versioned;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, StoredEvent};
use concord_runtime::Broker;
use concord_runtime::NatsPorts;
use concord_runtime::event_store::archived::ArchivedPart;
use concord_runtime::service::clock;
use concord_runtime::service::reading::{EventsRequest, MessagesRequest, Page, PageItem};
use concord_wire::subject::{Lane, Service};
use concord_wire::{AgentId, CaseId, Recipient, Token};
use futures::stream::{BoxStream, StreamExt, select, try_unfold};

use crate::shared::archive_reader;
use crate::shared::connection::ask;
use crate::shared::failure::Failure;
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// The pause before a service is asked again for what is new: the first one, and the longest.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Requests in a row that may fail before whoever follows is told.
const FAILURES_MAX: u32 = 4;

/// Events that are asked for.
#[derive(Debug, Clone)]
pub(crate) struct EventQuery {
    request: EventsRequest,
}

impl EventQuery {
    /// All events of one aggregate.
    pub(crate) fn of(aggregate: Aggregate, id: &Token) -> Self {
        Self::new(aggregate, Some(id.clone()))
    }

    /// All events of every aggregate of a kind.
    pub(crate) fn of_kind(aggregate: Aggregate) -> Self {
        Self::new(aggregate, None)
    }

    fn new(aggregate: Aggregate, id: Option<Token>) -> Self {
        let request = EventsRequest {
            aggregate,
            id,
            names: Vec::new(),
            after: 0,
            limit: None,
            without_bodies: false,
        };
        Self { request }
    }

    /// Only events with these names.
    pub(crate) fn named(mut self, names: &[&'static str]) -> Self {
        self.request.names = names.iter().map(|name| Token::fixed(name)).collect();
        self
    }

    /// Without bodies.
    pub(crate) fn without_bodies(mut self) -> Self {
        self.request.without_bodies = true;
        self
    }

    /// Only what is stored after this sequence.
    pub(crate) fn after(mut self, sequence: u64) -> Self {
        self.request.after = sequence;
        self
    }

    fn scope(&self, broker: &Broker) -> Scope {
        let filters = self.request.filters(broker.subjects());
        let aggregate = self.request.aggregate;
        let id = self.request.id.clone();
        let part = id.map(|id| ArchivedPart::Aggregate(aggregate, id));
        let scope = Scope::any_of(StreamKind::Events, filters);
        let scope = scope.archived_in(part.unwrap_or_default());
        match self.request.without_bodies {
            true => scope.without_bodies(),
            false => scope,
        }
    }
}

/// Messages or events as they come.
pub(crate) type Arriving = BoxStream<'static, Result<StreamMessage, Failure>>;

/// Where views read what is stored. Cheap to clone.
#[derive(Clone)]
pub(crate) enum EventSource {
    /// The streams.
    Streams(Broker, Box<NatsPorts>),
    /// The services, which check what the caller may read.
    Services(Broker),
}

impl EventSource {
    /// The services where the connection has a caller, else the streams.
    pub(crate) async fn new(broker: &Broker) -> Result<Self, Failure> {
        if broker.caller.is_some() {
            return Ok(Self::Services(broker.clone()));
        }
        let store = NatsPorts::new(broker.clone()).await?;
        Ok(Self::Streams(broker.clone(), Box::new(store)))
    }

    /// Loads the events of one aggregate; its state after them, and the events.
    pub(crate) async fn aggregate<M: Machine>(
        &self,
        id: &Token,
    ) -> Result<(M::State, Vec<StoredEvent<M::Event>>), Failure> {
        let events = match self {
            Self::Streams(broker, store) => archive_reader::load(broker, store, id).await?,
            Self::Services(_) => {
                let aggregate = <M::Event as concord_events::AggregateEvent>::AGGREGATE;
                let mut events = Vec::new();
                let query = EventQuery::of(aggregate, id);
                self.for_each(&query, "reading events", |stored| {
                    events.push(event_of(&stored)?);
                    Ok(())
                })
                .await?;
                // A part of what is removed just now: its first event is gone.
                let is_part = |first: &StoredEvent<_>| !first.meta.earlier.is_empty();
                if events.first().is_some_and(is_part) {
                    events.clear();
                }
                events
            }
        };
        let mut rebuilt = Versioned::<M>::default();
        for event in &events {
            rebuilt.apply(event.clone());
        }
        Ok((rebuilt.into_state(), events))
    }

    /// Reads the events that are stored now, in order.
    pub(crate) async fn for_each(
        &self,
        query: &EventQuery,
        what: &'static str,
        mut take: impl FnMut(StreamMessage) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Streams(broker, _) => {
                stream_reader::for_each(broker, &query.scope(broker), what, take).await?;
            }
            Self::Services(broker) => {
                let mut request = query.request.clone();
                loop {
                    let page = events(broker, &request).await?;
                    let (next, stored) = stored(StreamKind::Events, page);
                    stored.into_iter().try_for_each(&mut take)?;
                    let Some(next) = next else { break };
                    request.after = next;
                }
            }
        }
        Ok(())
    }

    /// Reads the messages of a case that are stored now: those of one lane in order, then those of the other. Gives the
    /// sequence of the last message of each lane.
    pub(crate) async fn messages(
        &self,
        case: &CaseId,
        after: [u64; 2],
        mut take: impl FnMut(StreamKind, StreamMessage) -> Result<(), Failure>,
    ) -> Result<[u64; 2], Failure> {
        let mut last = after;
        for (lane, last) in Lane::ALL.into_iter().zip(&mut last) {
            let kind = StreamKind::of_lane(lane);
            let after = *last;
            let mut take = |stored: StreamMessage| {
                *last = (*last).max(stored.sequence);
                take(kind, stored)
            };
            match self {
                Self::Streams(broker, _) => {
                    let scope = Scope::of(kind, broker.subjects().transcript(lane, case))
                        .archived_in(ArchivedPart::Case(case.clone()));
                    stream_reader::for_each(broker, &scope, "reading messages", take).await?;
                }
                Self::Services(broker) => {
                    let mut request = MessagesRequest {
                        case_id: case.clone(),
                        urgent: lane == Lane::Urgent,
                        after,
                        limit: None,
                    };
                    loop {
                        let page = ask(broker, Service::Coordinator, "messages", &request).await?;
                        let (next, stored) = stored(kind, page);
                        stored.into_iter().try_for_each(&mut take)?;
                        let Some(next) = next else { break };
                        request.after = next;
                    }
                }
            }
        }
        Ok(last)
    }

    /// The sequence of the last of these events; 0 where there is none.
    pub(crate) async fn last(&self, query: &EventQuery) -> Result<u64, Failure> {
        let mut last = query.request.after;
        let query = query.clone().without_bodies();
        self.for_each(&query, "reading events", |stored| {
            last = stored.sequence;
            Ok(())
        })
        .await?;
        Ok(last)
    }

    /// The events that are stored already, and all that follow.
    pub(crate) async fn follow(&self, query: &EventQuery) -> Result<Arriving, Failure> {
        match self {
            Self::Streams(broker, _) => {
                let (_, stored) = stream_reader::follow(broker, &query.scope(broker)).await?;
                Ok(events_alone(stored.boxed()))
            }
            Self::Services(broker) => {
                let poll = Poll {
                    broker: broker.clone(),
                    request: query.request.clone(),
                    read: VecDeque::new(),
                    pause: Duration::ZERO,
                    failures: 0,
                };
                Ok(try_unfold(poll, Poll::next).boxed())
            }
        }
    }

    /// The events that are stored from now on.
    pub(crate) async fn follow_new(&self, query: &EventQuery) -> Result<Arriving, Failure> {
        match self {
            Self::Streams(broker, _) => {
                let scope = query.scope(broker).new_only();
                let (_, stored) = stream_reader::follow(broker, &scope).await?;
                Ok(events_alone(stored.boxed()))
            }
            Self::Services(_) => {
                let last = self.last(query).await?;
                self.follow(&query.clone().after(last)).await
            }
        }
    }

    /// The messages that somebody is sent from now on. Under a name they are heard as they are published: nobody may read the
    /// stream of messages, and everybody may hear what is for them.
    pub(crate) async fn follow_inbox(&self, of: &AgentId) -> Result<Arriving, Failure> {
        let to = Recipient::from(of.clone());
        match self {
            Self::Streams(broker, _) => {
                let inbox = broker.subjects().inbox(Lane::Normal, &to);
                let scope = Scope::of(StreamKind::Messages, inbox).new_only();
                let (_, stored) = stream_reader::follow(broker, &scope).await?;
                Ok(stored.boxed())
            }
            Self::Services(broker) => {
                let mut heard = Vec::new();
                for lane in Lane::ALL {
                    let inbox = broker.subjects().inbox(lane, &to);
                    let messages = broker.client.subscribe(inbox).await;
                    let messages = messages
                        .map_err(|error| Failure::failed(format!("nothing is heard: {error}")))?;
                    let kind = StreamKind::of_lane(lane);
                    heard.push(messages.map(move |message| Ok(published(kind, message))));
                }
                Ok(futures::stream::select_all(heard).boxed())
            }
        }
    }
}

/// Both, as they come: whether it is one of the first, and what it is.
pub(crate) fn either(
    one: Arriving,
    other: Arriving,
) -> BoxStream<'static, (bool, Result<StreamMessage, Failure>)> {
    select(
        one.map(|stored| (true, stored)),
        other.map(|stored| (false, stored)),
    )
    .boxed()
}

/// What is stored, as an event of its kind.
pub(crate) fn event_of<E: concord_events::AggregateEvent>(
    stored: &StreamMessage,
) -> Result<StoredEvent<E>, Failure> {
    StoredEvent::decode(&stored.payload, stored.sequence).map_err(|error| {
        Failure::failed(format!(
            "the event at {} cannot be read: {error}",
            stored.sequence
        ))
    })
}

/// Without what is stored among events and is none.
fn events_alone(stored: Arriving) -> Arriving {
    let is_event = |stored: &Result<StreamMessage, Failure>| {
        let is_event = stored.as_ref().map_or(true, |one| one.non_event.is_none());
        std::future::ready(is_event)
    };
    stored.filter(is_event).boxed()
}

async fn events(broker: &Broker, request: &EventsRequest) -> Result<Page, Failure> {
    let service = request.aggregate.owner();
    ask(broker, service, "events", request).await
}

/// The events of a service as they come. It is asked again and again, in pauses that grow while nothing comes: so it keeps nothing
/// for whoever waits, and a request that finds nothing costs it one look at the stream.
struct Poll {
    broker: Broker,
    request: EventsRequest,
    read: VecDeque<StreamMessage>,
    pause: Duration,
    /// How often it has failed since it was answered last.
    failures: u32,
}

impl Poll {
    async fn next(mut self) -> Result<Option<(StreamMessage, Self)>, Failure> {
        loop {
            if let Some(first) = self.read.pop_front() {
                return Ok(Some((first, self)));
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).clamp(PAUSE, PAUSE_MAX);
            match events(&self.broker, &self.request).await {
                Ok(page) => self.take(page),
                // A service that is started anew is back in a moment.
                Err(_) if self.failures < FAILURES_MAX => self.failures += 1,
                Err(failure) => return Err(failure),
            }
        }
    }

    fn take(&mut self, page: Page) {
        self.failures = 0;
        let (next, stored) = stored(StreamKind::Events, page);
        let last = stored.last().map(|last| last.sequence);
        self.read.extend(stored);
        self.request.after = next.or(last).unwrap_or(self.request.after);
        if next.is_some() {
            self.pause = Duration::ZERO;
        } else if last.is_some() {
            self.pause = PAUSE;
        }
    }
}

/// Where the next page begins, and what stands on this one.
fn stored(kind: StreamKind, page: Page) -> (Option<u64>, Vec<StreamMessage>) {
    let items = page.items.into_iter();
    let stored = items.map(|item| of_item(kind, item));
    (page.next, stored.collect())
}

fn of_item(kind: StreamKind, item: PageItem) -> StreamMessage {
    let mut headers = HeaderMap::new();
    for (name, value) in &item.headers {
        headers.insert(name.as_str(), value.as_str());
    }
    let body = match (&item.body, item.omitted_bytes) {
        (Some(body), _) => body.get().to_owned(),
        (None, Some(bytes)) => format!("\"{bytes} bytes, more than a service gives\""),
        (None, None) => String::new(),
    };
    let place = (item.sequence, item.at);
    StreamMessage::stored(kind, place, item.subject, headers, body.into())
}

/// A message that is heard as it is published; where it is stored is not known.
fn published(kind: StreamKind, message: async_nats::Message) -> StreamMessage {
    let headers = message.headers.unwrap_or_default();
    let subject = message.subject.to_string();
    StreamMessage::stored(kind, (0, clock::now()), subject, headers, message.payload)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_of_a_page_is_read_as_if_it_came_from_its_stream() {
        let page = json!({
            "items": [
                { "subject": "concord.v1.event.case.c-1.opened", "sequence": 7, "at": "2026-11-21T20:00:00.000Z",
                  "headers": { "Nats-Msg-Id": "m-1" }, "body": { "fact": "opened", "n": 1.50 } },
                { "subject": "concord.v1.msg.c-1.a.b.finding", "sequence": 9, "at": "2026-11-21T20:00:00.000Z",
                  "omitted_bytes": 900_000 },
            ],
            "next": 9,
        });
        let page = serde_json::from_str(&page.to_string()).unwrap();
        let (next, stored) = stored(StreamKind::Events, page);
        assert_eq!(next, Some(9));
        assert_eq!(stored[0].payload, r#"{"fact":"opened","n":1.5}"#);
        assert_eq!(
            (stored[0].sequence, stored[0].header("Nats-Msg-Id")),
            (7, "m-1")
        );
        let omitted: String = serde_json::from_slice(&stored[1].payload).unwrap();
        assert!(omitted.starts_with("900000 bytes"), "{omitted}");
    }
}
