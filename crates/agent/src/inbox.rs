//! Where an agent's messages come from.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::{self, AckKind};
use concord_protocol::payload::ErrorReport;
use concord_protocol::subject::Lane;
use concord_protocol::{Dialect, Envelope, ErrorCode, Fault, MessageType, Recipient, Timestamp, dialect, header};
use futures::StreamExt;
use tokio::sync::Semaphore;

use crate::agent::now;
use crate::{Agent, Error, Message, encoding};

/// Messages that are worked on at a time from a durable inbox. The broker gives out a thousand; the others wait here, so that
/// an answer among them is found by the handler that waits for it.
const CONCURRENT: usize = 32;
/// Then the broker gives a message to somebody else, or again.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered that is not acknowledged.
const DELIVERIES_MAX: i64 = 5;

impl Agent {
    /// Listens: what is said after this returns is heard.
    pub(crate) async fn listen(&self, durable: bool) -> Result<(), Error> {
        for lane in Lane::ALL {
            if durable {
                self.pull(lane).await?;
            } else {
                self.subscribe(lane, &Recipient::Agent(self.inner.agent_id.clone())).await?;
            }
            self.subscribe(lane, &Recipient::All).await?;
        }
        self.inner.client.flush().await.map_err(|error| Error::broker("take subscriptions")(error.into()))
    }

    async fn subscribe(&self, lane: Lane, to: &Recipient) -> Result<(), Error> {
        let subscribed = self.inner.client.subscribe(self.inner.layout.subjects.inbox(lane, to)).await;
        let mut inbox = subscribed.map_err(|error| Error::broker("take a subscription")(error.into()))?;
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            while let Some(Some(message)) = agent.inner.stop.run_until_cancelled(inbox.next()).await {
                // Nobody says where it is stored; when it was heard tells it from the same words at another time.
                let heard = now();
                let place = u64::try_from(heard.unix_millis()).unwrap_or_default();
                if let Some(message) = agent.read(&message, place, heard) {
                    agent.inner.working.spawn(agent.clone().take(message));
                }
            }
        });
        Ok(())
    }

    async fn pull(&self, lane: Lane) -> Result<(), Error> {
        let (stream, name, filter) = self.inner.layout.agent_inbox(lane, &self.inner.agent_id);
        let stream = self.inner.layout.stream_name(stream);
        let config = pull::Config {
            durable_name: Some(name.clone()),
            filter_subject: filter,
            ack_policy: AckPolicy::Explicit,
            deliver_policy: DeliverPolicy::New,
            ack_wait: ACK_WAIT,
            max_deliver: DELIVERIES_MAX,
            ..pull::Config::default()
        };
        let unread = |error: Box<dyn std::error::Error + Send + Sync>| Error::broker("give an inbox")(error);
        let stream = self.inner.jetstream.get_stream_no_info(&stream).await.map_err(|error| unread(error.into()))?;
        // One that is there already has its place in the stream, whoever made it.
        let consumer = match stream.get_consumer::<pull::Config>(&name).await {
            Ok(consumer) => consumer,
            Err(_) => stream.create_consumer(config).await.map_err(|error| unread(error.into()))?,
        };
        let messages = consumer.stream().max_messages_per_batch(CONCURRENT).messages().await;
        let messages = messages.map_err(|error| unread(error.into()))?;
        let (agent, seats) = (self.clone(), Arc::new(Semaphore::new(CONCURRENT)));
        self.inner.listening.spawn(async move {
            let stop = agent.inner.stop.clone();
            let mut deliveries = std::pin::pin!(messages.take_until(stop.cancelled_owned()));
            while let Some(delivery) = deliveries.next().await {
                match delivery {
                    Ok(delivery) => {
                        agent.inner.working.spawn(agent.clone().work(delivery, Arc::clone(&seats)));
                    }
                    Err(error) => tracing::warn!(%error, "No messages from the broker."),
                }
            }
        });
        Ok(())
    }

    /// Handles a delivery when there is a seat for it, and tells the broker that it goes on for as long as it does.
    async fn work(self, delivery: jetstream::Message, seats: Arc<Semaphore>) {
        let stored = delivery.info().map_or((0, now()), |info| {
            let millis = info.published.unix_timestamp_nanos() / 1_000_000;
            (info.stream_sequence, i64::try_from(millis).map_or_else(|_| now(), Timestamp::from_unix_millis))
        });
        if let Some(message) = self.read(&delivery.message, stored.0, stored.1) {
            let mut handling = std::pin::pin!(self.clone().take_seated(message, &seats));
            let done = loop {
                match tokio::time::timeout(ACK_WAIT / 3, &mut handling).await {
                    Ok(done) => break done,
                    Err(_) => {
                        if let Err(error) = delivery.ack_with(AckKind::Progress).await {
                            tracing::warn!(%error, "The broker may deliver a message again that is worked on.");
                        }
                    }
                }
            };
            if !done {
                // The agent goes, and has not begun with it: the broker keeps it.
                return;
            }
        }
        if let Err(error) = delivery.ack().await {
            tracing::warn!(%error, "A message was not acknowledged and will come again.");
        }
    }

    /// What was said, in whatever dialect; none where it is nothing, or for nobody here.
    fn read(&self, message: &async_nats::Message, place: u64, at: Timestamp) -> Option<Message> {
        let declared = message.headers.as_ref().and_then(|headers| headers.get(header::DIALECT));
        let declared = declared.and_then(|name| Dialect::parse(name.as_str()));
        let subject = self.inner.layout.subjects.parse(&message.subject).ok()?;
        let body = encoding::plain(message);
        let envelope = match body.and_then(|body| dialect::read(&body, declared, &subject)) {
            Ok((envelope, _)) => envelope.completed(place, at),
            Err(fault) => {
                tracing::warn!(subject = %message.subject, %fault, "A message is not understood.");
                return None;
            }
        };
        self.learn(&envelope);
        let is_own = envelope.from_agent == self.inner.agent_id;
        (!is_own).then_some(envelope)
    }

    async fn take(self, message: Message) {
        let Some(message) = self.whole(message).await else { return };
        if !self.answered(&message) {
            self.handle(message).await;
        }
    }

    /// The same, with a seat for the handler: what a handler waits for needs none. False when the agent goes before there is one.
    async fn take_seated(self, message: Message, seats: &Semaphore) -> bool {
        let Some(message) = self.whole(message).await else { return true };
        if self.answered(&message) {
            return true;
        }
        let stop = self.inner.stop.clone();
        let Some(Ok(_seat)) = stop.run_until_cancelled(seats.acquire()).await else { return false };
        self.handle(message).await;
        true
    }

    async fn handle(self, message: Message) {
        let Some(handler) = self.inner.handlers.of(&message.message_type).cloned() else { return };
        // On a task of its own: one that panics, or blocks, must not take the inbox with it.
        let (agent, heard) = (self.clone(), message.clone());
        let why = match self.inner.working.spawn(async move { handler(agent, heard).await }).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panicked) => panicked.to_string(),
        };
        tracing::warn!(error = %why, kind = %message.message_type, "A handler failed.");
        if message.requires_response
            && let Err(error) = self.failed(&message).await
        {
            tracing::warn!(%error, "The sender was not told.");
        }
    }

    async fn failed(&self, message: &Envelope) -> Result<(), Error> {
        let why = format!("{} failed.", self.inner.agent_id);
        let fault = Fault::new(ErrorCode::InternalError, "", why, "Ask again later.");
        self.reply(message, MessageType::Error, &ErrorReport::from(&fault)).await
    }
}
