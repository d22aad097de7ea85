//! Where an agent's messages come from.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::{self, AckKind};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::Lane;
use concord_wire::{
    Dialect, Envelope, ErrorCode, Fault, MessageType, Recipient, Timestamp, dialect, header,
};
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::agent::now;
use crate::waiting::ENDS;
use crate::{Agent, Error, Message, encoding};

type PullConsumer = jetstream::consumer::Consumer<pull::Config>;
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Messages that are worked on at a time from a durable inbox, of each lane. The broker keeps the others.
const CONCURRENT: usize = 32;
/// How long the broker keeps a request for messages that it does not have.
const EXPIRES: Duration = Duration::from_secs(2);
/// A broker that is silent for so long has lost the request, as when it was started again.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long to wait before a broker that gave no messages is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// Then the broker gives a message to somebody else, or again.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered that is not acknowledged.
const DELIVERIES_MAX: i64 = 5;

impl Agent {
    /// Listens: what is said after this returns is heard.
    pub(crate) async fn listen(&self, durable: bool) -> Result<(), Error> {
        let (subjects, own) = (&self.inner.layout.subjects, &self.inner.agent_id);
        for lane in Lane::ALL {
            if durable {
                for kind in ENDS {
                    self.subscribe(
                        subjects.between(lane, None, own, &kind.token()),
                        Self::take_ahead,
                    )
                    .await?;
                }
                self.pull(lane).await?;
            } else {
                self.subscribe(
                    subjects.inbox(lane, &Recipient::Agent(own.clone())),
                    Self::take,
                )
                .await?;
            }
            self.subscribe(subjects.inbox(lane, &Recipient::All), Self::take)
                .await?;
        }
        self.inner
            .client
            .flush()
            .await
            .map_err(|error| Error::broker("take subscriptions")(error.into()))
    }

    async fn subscribe<F, R>(&self, subject: String, take: F) -> Result<(), Error>
    where
        F: Fn(Self, Message) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let subscribed = self.inner.client.subscribe(subject).await;
        let mut inbox =
            subscribed.map_err(|error| Error::broker("take a subscription")(error.into()))?;
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            while let Some(Some(message)) = agent.inner.stop.run_until_cancelled(inbox.next()).await
            {
                // Nobody says where it is stored; when it was heard tells it from the same words at another time.
                let heard = now();
                let place = u64::try_from(heard.unix_millis()).unwrap_or_default();
                if let Some(message) = agent.read(&message, place, heard) {
                    agent.inner.working.spawn(take(agent.clone(), message));
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
        let unread =
            |error: Box<dyn std::error::Error + Send + Sync>| Error::broker("give an inbox")(error);
        let stream = self
            .inner
            .jetstream
            .get_stream_no_info(&stream)
            .await
            .map_err(|error| unread(error.into()))?;
        // One that is there already has its place in the stream, whoever made it.
        let consumer = match stream.get_consumer::<pull::Config>(&name).await {
            Ok(consumer) => consumer,
            Err(_) => stream
                .create_consumer(config)
                .await
                .map_err(|error| unread(error.into()))?,
        };
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            let (stop, seats) = (
                agent.inner.stop.clone(),
                Arc::new(Semaphore::new(CONCURRENT)),
            );
            while let Some(given) = stop
                .run_until_cancelled(agent.take_some(&consumer, &seats))
                .await
            {
                if let Err(error) = given {
                    tracing::warn!(%error, "No messages from the broker.");
                    stop.run_until_cancelled(tokio::time::sleep(RETRY)).await;
                }
            }
        });
        Ok(())
    }

    /// Works on as many messages as there are seats, as they come. The broker is asked for no others: what is not begun stays
    /// there, and none of its few deliveries is spent on it.
    async fn take_some(
        &self,
        consumer: &PullConsumer,
        seats: &Arc<Semaphore>,
    ) -> Result<(), AnyError> {
        let mut free = Arc::clone(seats).acquire_owned().await?;
        while let Ok(another) = Arc::clone(seats).try_acquire_owned() {
            free.merge(another);
        }
        let mut given = consumer
            .batch()
            .max_messages(free.num_permits())
            .expires(EXPIRES)
            .messages()
            .await?;
        while let Ok(Some(delivery)) = timeout(SILENCE_MAX, given.next()).await {
            let Some(seat) = free.split(1) else { break };
            self.inner.working.spawn(self.clone().work(delivery?, seat));
        }
        Ok(())
    }

    /// Handles a delivery, and tells the broker that it goes on for as long as it does.
    async fn work(self, delivery: jetstream::Message, _seat: OwnedSemaphorePermit) {
        let stored = delivery.info().map_or((0, now()), |info| {
            let millis = info.published.unix_timestamp_nanos() / 1_000_000;
            (
                info.stream_sequence,
                i64::try_from(millis).map_or_else(|_| now(), Timestamp::from_unix_millis),
            )
        });
        if let Some(message) = self.read(&delivery.message, stored.0, stored.1) {
            let mut handling = std::pin::pin!(self.clone().take(message));
            while timeout(ACK_WAIT / 3, &mut handling).await.is_err() {
                if let Err(error) = delivery.ack_with(AckKind::Progress).await {
                    tracing::warn!(%error, "The broker may deliver a message again that is worked on.");
                }
            }
        }
        if let Err(error) = delivery.ack().await {
            tracing::warn!(%error, "A message was not acknowledged and will come again.");
        }
    }

    /// What was said, in whatever dialect; none where it is nothing, or for nobody here.
    fn read(&self, message: &async_nats::Message, place: u64, at: Timestamp) -> Option<Message> {
        let declared = message
            .headers
            .as_ref()
            .and_then(|headers| headers.get(header::DIALECT));
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
        let Some(message) = self.whole(message).await else {
            return;
        };
        if !self.inner.waiting.hand_over(&message) {
            self.handle(message).await;
        }
    }

    /// Of what comes from the durable inbox as well, gives requests their answers: there nobody would find them behind
    /// messages whose handlers wait for them.
    async fn take_ahead(self, message: Message) {
        if self.inner.waiting.waits_for(&message)
            && let Some(message) = self.whole(message).await
        {
            self.inner.waiting.hand_over_ahead(&message);
        }
    }

    async fn handle(self, message: Message) {
        let Some(handler) = self.inner.handlers.of(&message.message_type).cloned() else {
            return;
        };
        // On a task of its own: one that panics, or blocks, must not take the inbox with it.
        let (agent, heard) = (self.clone(), message.clone());
        let why = match self
            .inner
            .working
            .spawn(async move { handler(agent, heard).await })
            .await
        {
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
        self.reply(message, MessageType::Error, &ErrorReport::from(&fault))
            .await
    }
}
