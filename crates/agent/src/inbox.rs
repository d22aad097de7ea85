//! Where an agent's messages come from.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::{self, AckKind};
use concord_protocol::payload::ErrorReport;
use concord_protocol::subject::Lane;
use concord_protocol::{Dialect, Envelope, ErrorCode, Fault, MessageType, Recipient, dialect, header};
use futures::StreamExt;

use crate::{Agent, Error, Message, encoding};

/// Messages that are worked on at a time from a durable inbox.
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
                if let Some(message) = agent.read(&message) {
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
        let (agent, working) = (self.clone(), self.inner.working.clone());
        self.inner.listening.spawn(async move {
            let stop = agent.inner.stop.clone();
            let deliveries = messages.take_until(stop.cancelled_owned());
            let work = deliveries.for_each_concurrent(CONCURRENT, |delivery| {
                let agent = agent.clone();
                async move {
                    match delivery {
                        Ok(delivery) => agent.work(delivery).await,
                        Err(error) => tracing::warn!(%error, "No messages from the broker."),
                    }
                }
            });
            working.track_future(work).await;
        });
        Ok(())
    }

    /// Handles a delivery, and tells the broker that it goes on for as long as it does.
    async fn work(self, delivery: jetstream::Message) {
        if let Some(message) = self.read(&delivery.message) {
            let mut handling = std::pin::pin!(self.clone().take(message));
            while tokio::time::timeout(ACK_WAIT / 3, &mut handling).await.is_err() {
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
    fn read(&self, message: &async_nats::Message) -> Option<Message> {
        let declared = message.headers.as_ref().and_then(|headers| headers.get(header::DIALECT));
        let declared = declared.and_then(|name| Dialect::parse(name.as_str()));
        let subject = self.inner.layout.subjects.parse(&message.subject).ok()?;
        let body = encoding::plain(message);
        let envelope = match body.and_then(|body| dialect::read(&body, declared, &subject)) {
            Ok((envelope, _)) => envelope,
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

    async fn handle(self, message: Message) {
        let Some(handler) = self.inner.handlers.of(&message.message_type) else { return };
        if let Err(error) = handler(self.clone(), message.clone()).await {
            tracing::warn!(error = %error, kind = %message.message_type, "A handler failed.");
            if message.requires_response
                && let Err(error) = self.failed(&message).await
            {
                tracing::warn!(%error, "The sender was not told.");
            }
        }
    }

    async fn failed(&self, message: &Envelope) -> Result<(), Error> {
        let why = format!("{} failed.", self.inner.agent_id);
        let fault = Fault::new(ErrorCode::InternalError, "", why, "Ask again later.");
        self.reply(message, MessageType::Error, &ErrorReport::from(&fault)).await
    }
}
