//! Asking a consumer for messages, so that nothing is left behind when a process is to stop.
//!
//! The client library's own stream of messages can only be dropped, and with it everything that the broker has sent and
//! nobody has looked at; the broker would give that to another process only after it has missed the answers. Here it is
//! known how many messages the broker may still send, so a process that is to stop asks for no more, takes what is still
//! sent, and gives it back.
//!
//! It asks for and holds a bounded number of bytes, too ([`pull_room`](crate::broker::pull_room)): of what is larger than any message that is read, for one at a time. It
//! asks for no more than there are places for, because the worker tells the broker about the messages that have a place that they are still worked on. What the client
//! has received and nobody has looked at would be delivered again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::AckKind;
use async_nats::{Message, Subscriber};
use futures::StreamExt;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{timeout, timeout_at};

use crate::broker::Broker;
use crate::broker::delivery_info::ACKNOWLEDGEMENTS;
use crate::broker::provision::PullConsumer;
use crate::broker::pull_room::{self as room, ConsumerRoom, Room};

/// How long the broker keeps a request for messages that it does not have.
pub(crate) const EXPIRES: Duration = Duration::from_secs(1);
/// How long it keeps one where nothing came for a while: twice as long each time, up to this. There are some two hundred consumers, and every
/// replica asks each of them. A broker of a cluster that dies takes the requests with it and nobody tells: this and [`SILENCE_MAX`] is how long
/// a consumer without work may then be deaf. So long can it take, too, until a process that is to stop is sent no more.
const EXPIRES_IDLE_MAX: Duration = Duration::from_secs(4);
/// How often is looked whether the connection was lost, and the requests with it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A broker that is silent for so long after a request has expired has lost it, as when it was started again.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// The broker has nothing (more) for a request.
const EXPIRED: u16 = 408;
/// A request has ended before its time: it has no bytes left for the next message, which another request is given, or bytes and no messages.
/// Other conflicts are errors; the broker tells them apart by words alone.
const CONFLICT: u16 = 409;
const NO_BYTES_LEFT: &str = "Message Size Exceeds MaxBytes";
const NO_MESSAGES_LEFT: &str = "Batch Completed";
/// How many messages a request that has ended still asked for.
const UNSENT: &str = "Nats-Pending-Messages";
/// How many bytes a request that has ended still asked for.
const UNSENT_BYTES: &str = "Nats-Pending-Bytes";

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Messages of one consumer, as this process asks for them.
pub(crate) struct Pull {
    broker: Broker,
    subject: String,
    inbox: String,
    answers: Subscriber,
    /// How many messages are asked for at most.
    batch: usize,
    /// It asks for at least so many at once: a request for each message costs the broker more than the message.
    share: usize,
    /// One permit for each message that this process may hold. Messages that were taken and are not done with hold theirs.
    places: Arc<Semaphore>,
    /// How many messages the broker may send without being asked again.
    asked: usize,
    /// How long the broker keeps the next request.
    expires: Duration,
    /// When the broker has surely no request any more, or is silent for too long.
    silent_at: Instant,
    /// How often the process had connected to the broker when it asked last.
    connects: u64,
    room: ConsumerRoom,
    /// The message that is next was larger than all that was asked for.
    is_next_large: bool,
    /// For the large message that was asked for, until it is done with.
    large: Option<OwnedSemaphorePermit>,
    /// A message that was received and waits for room.
    received: Option<Message>,
}

/// A message, with its place until it is done with.
pub(crate) struct Taken {
    pub(crate) message: Message,
    pub(crate) place: Place,
}

/// What a message has of what this process may hold, until it is done with.
pub(crate) struct Place {
    /// None where the broker sent it long after it was asked.
    _one: Option<OwnedSemaphorePermit>,
    /// None where it has that of large messages.
    _room: Option<OwnedSemaphorePermit>,
    _large: Option<OwnedSemaphorePermit>,
}

impl Pull {
    /// Begins to ask for messages of a consumer that exists, which has this room beside its own.
    pub(crate) async fn start(
        broker: &Broker,
        consumer: &PullConsumer,
        room: &Room,
    ) -> Result<Self, AnyError> {
        let inbox = broker.client.new_inbox();
        let answers = broker.client.subscribe(inbox.clone()).await?;
        let subject = format!(
            "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
            consumer.stream, consumer.name
        );
        let batch = consumer.batch();
        let places = consumer
            .in_flight_max
            .saturating_add(batch)
            .min(Semaphore::MAX_PERMITS);
        let (share, places) = ((batch / 2).max(1), Arc::new(Semaphore::new(places)));
        Ok(Self {
            broker: broker.clone(),
            subject,
            inbox,
            answers,
            batch,
            share,
            places,
            asked: 0,
            expires: EXPIRES,
            silent_at: Instant::now(),
            connects: 0,
            room: ConsumerRoom::beside(room),
            is_next_large: false,
            large: None,
            received: None,
        })
    }

    /// The next message; nothing is lost when this is not waited for.
    pub(crate) async fn next(&mut self) -> Result<Taken, AnyError> {
        loop {
            if let Some(taken) = self.with_room().await? {
                return Ok(taken);
            }
            let more = self
                .places
                .available_permits()
                .min(self.batch)
                .saturating_sub(self.asked);
            if self.is_next_large {
                if self.asked == 0 {
                    self.ask_for_a_large_one().await?;
                }
            } else if more >= self.share && self.large.is_none() {
                self.ask(more, room::ASKED_BYTES_MAX).await?;
            } else if self.asked == 0 {
                // All places are taken. These are given back at once, with those that are free by then.
                drop(self.places.acquire_many(u32::try_from(self.share)?).await?);
                continue;
            }
            self.receive().await?;
        }
    }

    /// The next of the messages that were asked for, without asking for more; none when the broker sends no more. Nothing is lost when
    /// this is not waited for.
    pub(crate) async fn rest(&mut self) -> Result<Option<Taken>, AnyError> {
        loop {
            if let Some(taken) = self.with_room().await? {
                return Ok(Some(taken));
            }
            if self.asked == 0 {
                return Ok(None);
            }
            self.receive().await?;
        }
    }

    /// Waits for an answer of the broker, for a while.
    async fn receive(&mut self) -> Result<(), AnyError> {
        match timeout(LOOK_INTERVAL, self.answers.next()).await {
            Ok(answer) => {
                self.received = self.take(answer.ok_or("the subscription ended")?)?;
            }
            Err(_) => self.look(),
        }
        Ok(())
    }

    /// Forgets what was asked for where the broker does not know of it any more.
    fn look(&mut self) {
        if self.connects != self.broker.connects() || Instant::now() > self.silent_at {
            self.asked = 0;
            self.large = None;
            self.expires = EXPIRES;
            self.silent_at = Instant::now();
        }
    }

    /// The message that was received last, when there is room for its bytes. It waits here where this is not waited for.
    async fn with_room(&mut self) -> Result<Option<Taken>, AnyError> {
        let Some(message) = &self.received else {
            return Ok(None);
        };
        let room = match &self.large {
            Some(_) => None,
            None => Some(self.room.take(message.length).await?),
        };
        let place = Place {
            _one: Arc::clone(&self.places).try_acquire_owned().ok(),
            _room: room,
            _large: self.large.take(),
        };
        let message = self.received.take();
        Ok(message.map(|message| Taken { message, place }))
    }

    /// Asks for the message that is larger than what is asked for otherwise, when the process has room for such a one.
    async fn ask_for_a_large_one(&mut self) -> Result<(), AnyError> {
        let permit = self.room.of_a_large_one().await?;
        self.ask(1, room::bytes_max(&self.broker)).await?;
        (self.large, self.is_next_large) = (Some(permit), false);
        Ok(())
    }

    async fn ask(&mut self, more: usize, bytes_max: usize) -> Result<(), AnyError> {
        let expires = u64::try_from(self.expires.as_nanos())?;
        // An earlier request may be kept for longer.
        self.silent_at = self
            .silent_at
            .max(Instant::now() + self.expires + SILENCE_MAX);
        self.connects = self.broker.connects();
        let request = json!({ "batch": more, "max_bytes": bytes_max, "expires": expires });
        let (subject, inbox) = (self.subject.clone(), self.inbox.clone());
        self.broker
            .client
            .publish_with_reply(subject, inbox, request.to_string().into())
            .await?;
        self.asked += more;
        Ok(())
    }

    /// The message in an answer; none where the answer is about a request for messages.
    fn take(&mut self, answer: Message) -> Result<Option<Message>, AnyError> {
        if answer
            .reply
            .as_ref()
            .is_some_and(|reply| reply.starts_with(ACKNOWLEDGEMENTS))
        {
            self.asked = self.asked.saturating_sub(1);
            self.expires = EXPIRES;
            return Ok(Some(answer));
        }
        let description = answer.description.as_deref().unwrap_or_default();
        match answer.status.map(u16::from) {
            Some(EXPIRED) => {
                self.end_request(&answer);
                self.expires = (self.expires * 2).min(EXPIRES_IDLE_MAX);
                Ok(None)
            }
            Some(CONFLICT) if [NO_BYTES_LEFT, NO_MESSAGES_LEFT].contains(&description) => {
                self.end_request(&answer);
                // Nothing was sent for all the bytes that were asked for.
                self.is_next_large = description == NO_BYTES_LEFT
                    && number_in(&answer, UNSENT_BYTES) == Some(room::ASKED_BYTES_MAX);
                Ok(None)
            }
            // No answer of the broker: any agent can have it send something here, if it knows the inbox.
            None => {
                tracing::warn!(subject = %self.subject, "What came in place of a message is passed over.");
                Ok(None)
            }
            status => {
                Err(format!("the broker gives no messages: {status:?} {description:?}").into())
            }
        }
    }

    /// Takes into account that the broker sends no more for a request.
    fn end_request(&mut self, answer: &Message) {
        let unsent = number_in(answer, UNSENT);
        self.asked = self.asked.saturating_sub(unsent.unwrap_or(self.asked));
        if self.asked == 0 && self.received.is_none() {
            self.large = None;
        }
    }

    /// Asks for no more, and has what is still sent delivered to another process.
    ///
    /// It waits until the broker has ended each request, [`EXPIRES_IDLE_MAX`] at most. To end the subscription would be faster, and lose
    /// what the broker is about to send: that would come again only when its time to be acknowledged is over.
    pub(crate) async fn stop(mut self) -> Result<(), AnyError> {
        if let Some(reply) = self.received.take().and_then(|message| message.reply) {
            let put_back = AckKind::Nak(Some(EXPIRES));
            self.broker.acknowledge(reply, put_back).await?;
        }
        while self.asked > 0 {
            let Ok(answer) = timeout_at(self.silent_at.into(), self.answers.next()).await else {
                break;
            };
            let message = self.take(answer.ok_or("the subscription ended")?)?;
            if let Some(reply) = message.and_then(|message| message.reply) {
                // Given back at once it could come here again, as long as anything is asked for.
                self.broker
                    .acknowledge(reply, AckKind::Nak(Some(EXPIRES)))
                    .await?;
            }
        }
        Ok(())
    }
}

/// A number in a header of an answer.
fn number_in(answer: &Message, header: &str) -> Option<usize> {
    answer.headers.as_ref()?.get(header)?.as_str().parse().ok()
}
