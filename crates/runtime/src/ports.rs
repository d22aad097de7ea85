//! The ports of a service: what its handlers need of the world, as traits.
//!
//! A handler is generic over [`Ports`]. In production they are [`NatsPorts`](crate::event_store::nats::NatsPorts); the simulator implements
//! them for a world of its own, so the handlers that are simulated are the handlers that run. See `docs/adr/0038`.

pub mod nats;

use std::time::Duration;

use bytes::Bytes;
use concord_events::topology::{ConsumerKind, Layout};
use concord_events::{Aggregate, Deadline};
use concord_wire::subject::{Lane, SubjectSpace};
use concord_wire::{AgentId, Dialect, Envelope, Timestamp, Token};
use serde::{Deserialize, Serialize};

use crate::broker::Unavailable;
use crate::broker::inbox_progress::Progress;
use crate::codec;
use crate::codec::message_lookup::{SearchStart, Stored};
use crate::event_store::{Error, EventStore, Publisher};

/// The headers of a message. The type of the NATS client is used as it is: it is built without a connection, and a type
/// of our own would be a copy of each delivery's headers.
pub use async_nats::HeaderMap as Headers;

/// Messages that one search looks through at most.
const SEARCHED_MAX: usize = 1_000;
/// Messages that one search wants and whose payloads cannot be had, at most: each may have cost a fetch of megabytes.
const UNREADABLE_MAX: usize = 4;

/// Everything that handlers need of the world. Cheap to clone.
pub trait Ports:
    EventStore
    + Publisher
    + DeadLetters
    + Clock
    + Timers
    + MessageLookup
    + Inboxes
    + Preferences
    + Clone
{
    /// Subjects, streams and consumers of the installation.
    fn layout(&self) -> &Layout;

    /// A text that nobody has used before, to make an id of.
    fn unique_id(&self) -> String;

    /// How subjects are built and parsed.
    fn subjects(&self) -> &SubjectSpace {
        &self.layout().subjects
    }
}

/// The time, for reading and for waiting.
pub trait Clock: Send + Sync + 'static {
    /// The present.
    fn now(&self) -> Timestamp;

    /// Waits for this long.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// A deadline as the scheduler holds it, and delivers it when it is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmedDeadline {
    /// The kind of aggregate that waits for it.
    pub aggregate: Aggregate,
    /// The id of the aggregate.
    pub id: Token,
    /// Its name among the deadlines of the aggregate.
    pub name: Token,
    /// When it is to be delivered.
    pub due: Timestamp,
}

impl ArmedDeadline {
    /// The deadline of an aggregate.
    pub fn new(aggregate: Aggregate, id: &Token, deadline: &Deadline) -> Self {
        Self {
            aggregate,
            id: id.clone(),
            name: deadline.name.clone(),
            due: deadline.due,
        }
    }
}

/// The scheduler that delivers deadlines when they are due.
pub trait Timers: Send + Sync + 'static {
    /// Holds a deadline, in place of an earlier one of the same aggregate and name.
    fn arm(&self, deadline: &ArmedDeadline) -> impl Future<Output = Result<(), Error>> + Send;

    /// Holds a deadline no longer. One that is being delivered at this moment comes all the same.
    fn cancel(
        &self,
        aggregate: Aggregate,
        id: &Token,
        name: &Token,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The deadlines that are held, earliest first; at most `count_max`.
    fn armed(
        &self,
        count_max: usize,
    ) -> impl Future<Output = Result<Vec<ArmedDeadline>, Error>> + Send;
}

/// The stream of dead letters.
pub trait DeadLetters: Send + Sync + 'static {
    /// Whether a body of so many bytes can be stored in one message.
    fn has_room_for(&self, bytes: usize) -> bool;

    /// Stores a letter; done when it is stored. One under the same message id is stored once.
    fn keep(
        &self,
        subject: String,
        headers: Headers,
        body: Bytes,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A search among the messages of a lane whose subject matches a filter. At most a thousand are looked through.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    lane: Lane,
    filter: &'a str,
    start: SearchStart,
    left: usize,
}

impl<'a> Search<'a> {
    /// A search that has not looked at any message.
    pub fn new(lane: Lane, filter: &'a str, start: SearchStart) -> Self {
        Self {
            lane,
            filter,
            start,
            left: SEARCHED_MAX,
        }
    }

    /// The next message; none where there is no other, or enough were looked through.
    pub async fn next(
        &mut self,
        messages: &(impl MessageLookup + ?Sized),
    ) -> Result<Option<Stored>, Unavailable> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let found = messages.next_message(self.lane, self.filter, self.start);
        let found = found.await?;
        if let Some(stored) = &found {
            self.start = SearchStart::Sequence(stored.sequence + 1);
        }
        Ok(found)
    }
}

/// Messages that are looked up one by one, as the leader of their stream has them.
pub trait MessageLookup: Send + Sync + 'static {
    /// The first message from `start` on whose subject matches `filter`; without its payload where that is kept apart from it, since
    /// who searches passes most of them over.
    fn next_message(
        &self,
        lane: Lane,
        filter: &str,
        start: SearchStart,
    ) -> impl Future<Output = Result<Option<Stored>, Unavailable>> + Send;

    /// A message with its payload, which may be kept apart from it. An object that is not what the message says is the
    /// sender's fault.
    fn with_payload(
        &self,
        envelope: Envelope,
    ) -> impl Future<Output = Result<Envelope, codec::Error>> + Send;

    /// What `wanted` makes of the first message that it makes something of, among those of a search.
    /// It is asked before the payload is fetched, where that is kept apart, and again with it.
    fn find_message<T: Send>(
        &self,
        mut search: Search<'_>,
        wanted: impl Fn(&Envelope, Timestamp) -> Option<T> + Send + Sync,
    ) -> impl Future<Output = Result<Option<T>, Unavailable>> + Send {
        async move {
            let mut unreadable = 0;
            while let Some(stored) = search.next(self).await? {
                let at = stored.stored_at;
                let is_wanted = |envelope: &Envelope| wanted(envelope, at).is_some();
                let Some(envelope) = stored.envelope.filter(is_wanted) else {
                    continue;
                };
                if let Some(found) = self
                    .readable(envelope)
                    .await?
                    .and_then(|one| wanted(&one, at))
                {
                    return Ok(Some(found));
                }
                unreadable += 1;
                if unreadable == UNREADABLE_MAX {
                    return Ok(None);
                }
            }
            Ok(None)
        }
    }

    /// A message with its payload; none where that is not what the message says.
    fn readable(
        &self,
        envelope: Envelope,
    ) -> impl Future<Output = Result<Option<Envelope>, Unavailable>> + Send {
        async move {
            match self.with_payload(envelope).await {
                Ok(envelope) => Ok(Some(envelope)),
                Err(codec::Error::Refused(_)) => Ok(None),
                Err(codec::Error::Unavailable(error)) => Err(error),
            }
        }
    }
}

/// What is sent to services.
pub trait Inboxes: Send + Sync + 'static {
    /// How far an inbox is read: what is still under way is not.
    fn progress(
        &self,
        inbox: ConsumerKind,
    ) -> impl Future<Output = Result<Progress, Unavailable>> + Send;
}

/// What is known of how agents want to be written to.
pub trait Preferences: Send + Sync + 'static {
    /// The dialect of an agent's card, where it has one.
    fn dialect_by_card(&self, agent: &AgentId) -> Option<Dialect>;

    /// Takes into account in which dialect an agent has written.
    fn wrote_in(&self, agent: &AgentId, dialect: Dialect);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use concord_wire::Fault;
    use serde_json::json;

    use super::*;

    /// A thousand messages, each with its payload elsewhere; counts what is fetched.
    #[derive(Default)]
    struct Kept {
        fetched: AtomicUsize,
        is_lost: bool,
    }

    impl MessageLookup for Kept {
        async fn next_message(
            &self,
            _: Lane,
            _: &str,
            start: SearchStart,
        ) -> Result<Option<Stored>, Unavailable> {
            let SearchStart::Sequence(sequence) = start else {
                return Ok(None);
            };
            let message = json!({
                "message_id": format!("m-{sequence}"), "timestamp": "2026-01-01T00:00:00Z", "from_agent": "ben",
                "to_agent": "ann", "message_type": "response", "payload": {},
            });
            Ok(Some(Stored {
                sequence,
                stored_at: Timestamp::default(),
                envelope: serde_json::from_value(message).ok(),
            }))
        }

        async fn with_payload(&self, envelope: Envelope) -> Result<Envelope, codec::Error> {
            self.fetched.fetch_add(1, Ordering::Relaxed);
            if self.is_lost {
                return Err(Fault::invalid("", "It is lost.", "Send it again.").into());
            }
            Ok(envelope)
        }
    }

    async fn found(kept: &Kept, wanted: impl Fn(&str) -> bool + Send + Sync) -> Option<String> {
        let wanted = |one: &Envelope, _: Timestamp| {
            let id = one.message_id.as_str();
            wanted(id).then(|| id.to_owned())
        };
        let search = Search::new(Lane::Normal, "", SearchStart::Sequence(1));
        let found = kept.find_message(search, wanted).await;
        found.expect("the broker is there")
    }

    /// Somebody may have sent a thousand messages of some bytes with payloads of megabytes each.
    #[tokio::test]
    async fn a_search_fetches_no_payload_of_what_it_passes_over() {
        let kept = Kept::default();
        let last = found(&kept, |id| id == "m-900").await;
        assert_eq!(last.as_deref(), Some("m-900"));
        assert_eq!(kept.fetched.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_search_ends_where_payloads_of_what_it_wants_cannot_be_had() {
        let kept = Kept {
            is_lost: true,
            ..Kept::default()
        };
        assert_eq!(found(&kept, |_| true).await, None);
        assert_eq!(kept.fetched.into_inner(), UNREADABLE_MAX);
    }
}
