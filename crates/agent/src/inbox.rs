//! Receiving messages: from plain subscriptions, or from a durable inbox.

use async_nats::jetstream::{self, AckKind};
use concord_wire::payload::ErrorReport;
use concord_wire::payload::batch::is_batch;
use concord_wire::subject::{Lane, RegisteredInbox, Service};
use concord_wire::{
    Dialect, Envelope, ErrorCode, Fault, MessageType, Priority, Recipient, Timestamp, dialect,
    header,
};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::now;
use crate::builder::{Handler, Hears};
use crate::pending_requests::ANSWERS;
use crate::pulling::{ACK_WAIT, AnyError, RETRY};
use crate::waking::{awake, handling};
use crate::{Agent, Error, Message, encoding};

/// How often the coordinator is asked to acknowledge a message, while nobody does.
const TELLINGS_MAX: usize = 3;

impl Agent {
    /// Begins to receive messages. With a durable inbox, every message that is stored after this returns is received; without one, every
    /// message that the broker reads after the subscriptions, which are sent when this returns.
    pub(crate) async fn listen(&self, hears: Hears) -> Result<(), Error> {
        let subjects = &self.inner.subjects;
        let agent_id = &self.inner.agent_id;
        for lane in Lane::ALL {
            if hears == Hears::WhileConnected {
                self.subscribe(
                    subjects.inbox(lane, &Recipient::Agent(agent_id.clone())),
                    Self::receive,
                )
                .await?;
            } else {
                for kind in ANSWERS {
                    self.subscribe(
                        subjects.between(lane, None, agent_id, &kind.token()),
                        Self::receive_early,
                    )
                    .await?;
                }
                if hears == Hears::RegisteredInbox {
                    for inbox in subjects.registered_inboxes(lane, agent_id) {
                        self.take_registered(inbox).await?;
                    }
                } else {
                    // Each with permits of its own: no backlog and no slow handler delays an alert.
                    self.start_pulling(subjects.agent_inbox(lane, agent_id))
                        .await?;
                    self.start_pulling(subjects.agent_alerts(lane, agent_id))
                        .await?;
                }
            }
            let to_all = subjects.inbox(lane, &Recipient::All);
            if hears == Hears::WhileConnected {
                self.subscribe(to_all, Self::receive_from_all).await?;
            } else {
                self.subscribe(to_all, Self::receive_beside_inbox).await?;
            }
        }
        self.inner
            .client
            .flush()
            .await
            .map_err(|error| Error::broker("take subscriptions")(error.into()))
    }

    async fn subscribe<F, R>(&self, subject: String, receive: F) -> Result<(), Error>
    where
        F: Fn(Self, Message) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let subscribed = self.inner.client.subscribe(subject).await;
        let mut inbox =
            subscribed.map_err(|error| Error::broker("take a subscription")(error.into()))?;
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            let closing = &agent.inner.closing;
            while let Some(Some(message)) = closing.stop.run_until_cancelled(inbox.next()).await {
                // A plain subscription does not say where a message is stored. The time tells equal messages apart.
                let received_at = now();
                let sequence = u64::try_from(received_at.unix_millis()).unwrap_or_default();
                // An agent that closes takes nothing new, but what its handlers wait for.
                if let Some(message) = agent.read(&message, sequence, received_at)
                    && (!closing.begun.is_cancelled() || agent.inner.pending.is_awaited(&message))
                {
                    agent.inner.working.spawn(receive(agent.clone(), message));
                }
            }
        });
        Ok(())
    }

    /// Begins to take what comes from the inbox that operators have made. The broker bounds how much is on its way.
    async fn take_registered(&self, inbox: RegisteredInbox) -> Result<(), Error> {
        let client = &self.inner.client;
        let heard = client.queue_subscribe(inbox.deliver_to, inbox.group).await;
        let mut heard =
            heard.map_err(|error| Error::broker("take a subscription")(error.into()))?;
        let agent = self.clone();
        self.inner.listening.spawn(async move {
            let begun = &agent.inner.closing.begun;
            while let Some(Some(message)) = begun.run_until_cancelled(heard.next()).await {
                let context = agent.inner.jetstream.clone();
                let delivery = jetstream::Message { message, context };
                let working = agent.clone().process(delivery, Hears::RegisteredInbox);
                agent.inner.working.spawn(working);
            }
        });
        Ok(())
    }

    /// Handles a delivery, tells the broker meanwhile that this goes on, and acknowledges it.
    pub(crate) async fn process(self, delivery: jetstream::Message, from: Hears) {
        let stored = delivery.info().map_or((0, now()), |info| {
            let millis = info.published.unix_timestamp_nanos() / 1_000_000;
            (
                info.stream_sequence,
                i64::try_from(millis).map_or_else(|_| now(), Timestamp::from_unix_millis),
            )
        });
        let mut end = AckKind::Ack;
        if let Some(message) = self.read(&delivery.message, stored.0, stored.1) {
            let handled = self.clone().receive_meanwhile(message, &delivery, from);
            tokio::select! {
                // First: a handler that is cut off would tell the sender that it failed.
                biased;
                () = self.inner.closing.cut_off.cancelled() => {
                    tracing::warn!(subject = %delivery.subject, "The agent closes before a handler has ended; what it was given comes again.");
                    end = AckKind::Nak(None);
                }
                () = handled => {}
            }
        }
        if let Err(error) = self.tell(&delivery, from, end, TELLINGS_MAX).await {
            tracing::warn!(%error, "A message was not acknowledged and will come again.");
        }
    }

    /// Tells the broker from time to time that a delivery is worked on.
    async fn receive_meanwhile(self, message: Message, delivery: &jetstream::Message, from: Hears) {
        let mut handling = std::pin::pin!(self.clone().receive(message));
        while timeout(ACK_WAIT / 3, &mut handling).await.is_err() {
            if let Err(error) = self.tell(delivery, from, AckKind::Progress, 1).await {
                tracing::warn!(%error, "The broker may deliver a message again that is worked on.");
            }
        }
    }

    /// Tells the broker something of a delivery. Where its inbox was made for the agent the coordinator does, because the agent's user may
    /// ask JetStream for nothing.
    async fn tell(
        &self,
        delivery: &jetstream::Message,
        from: Hears,
        kind: AckKind,
        mut tries: usize,
    ) -> Result<(), AnyError> {
        if from != Hears::RegisteredInbox {
            return delivery.ack_with(kind).await;
        }
        let told = match kind {
            AckKind::Progress => "+WPI",
            AckKind::Nak(_) => "-NAK",
            _ => "+ACK",
        };
        let asked = json!({ "delivery": delivery.reply.as_deref(), "told": told });
        loop {
            tries = tries.saturating_sub(1);
            let told = self.query::<Value>(Service::Coordinator, "acknowledge", &asked);
            match told.await {
                Ok(_) => return Ok(()),
                Err(error) if tries == 0 => return Err(error.into()),
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    /// Reads a message in any dialect. `None` if it cannot be read, or if this agent has sent it itself.
    fn read(&self, message: &async_nats::Message, sequence: u64, at: Timestamp) -> Option<Message> {
        let declared = message
            .headers
            .as_ref()
            .and_then(|headers| headers.get(header::DIALECT));
        let declared = declared.and_then(|name| Dialect::parse(name.as_str()));
        let subject = self.inner.subjects.parse(&message.subject).ok()?;
        let body = encoding::decoded_body(message);
        let envelope = match body.and_then(|body| dialect::read(&body, declared, &subject)) {
            Ok((envelope, _)) => envelope.completed(sequence, at),
            Err(fault) => {
                tracing::warn!(subject = %message.subject, %fault, "A message is not understood.");
                return None;
            }
        };
        self.remember_encodings(&envelope);
        let is_own = envelope.from_agent == self.inner.agent_id;
        (!is_own).then_some(envelope)
    }

    /// What is said to everybody. An alert that is as urgent as can be counts only from the coordinator, which asks whether its sender may
    /// alert and then tells everybody.
    async fn receive_from_all(self, message: Message) {
        let is_alert = message.message_type == MessageType::Alert;
        if !is_alert || is_told(&message) || message.priority != Priority::SystemCritical {
            self.receive(message).await;
        }
    }

    /// The same beside a durable inbox, from which alerts come.
    async fn receive_beside_inbox(self, message: Message) {
        if !is_told(&message) {
            self.receive_from_all(message).await;
        }
    }

    async fn receive(self, message: Message) {
        let Some(message) = self.with_fetched_payload(message).await else {
            return;
        };
        self.hold_memory(&message);
        if !self.inner.pending.deliver(&message)
            && let Some(message) = awake(message, &self.inner.agent_id, &self.inner.handlers)
        {
            self.handle(message).await;
        }
    }

    /// Gives an answer to the request that waits for it, before it comes from the durable inbox as well: there it may stand
    /// behind messages whose handlers wait for just this answer.
    async fn receive_early(self, message: Message) {
        if self.inner.pending.is_awaited(&message)
            && let Some(message) = self.with_fetched_payload(message).await
        {
            self.inner.pending.deliver_early(&message);
        }
    }

    async fn handle(self, message: Message) {
        let Some(handler) = self.inner.handlers.handler_for(&message).cloned() else {
            return;
        };
        if is_batch(&message) {
            self.answer_batch(&handler, message).await;
        } else {
            self.run_handler(handler, message).await;
        }
    }

    /// Has a handler handle a message. Where it fails, the sender is told. When this is dropped, the handler ends.
    pub(crate) async fn run_handler(self, handler: Handler, message: Message) {
        // On a task of its own: a handler that panics or blocks must not stop the inbox.
        let agent = self.clone();
        let handled = message.clone();
        let running = async move { handler(agent, handled).await };
        let running = self.in_handler(handling(self.id(), &message, running));
        let mut running = AbortOnDropHandle::new(self.inner.working.spawn(running));
        let cut_off = &self.inner.closing.cut_off;
        let why = match cut_off.run_until_cancelled(&mut running).await {
            Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(panicked)) => panicked.to_string(),
            None => {
                running.abort();
                "It was cut off, because the agent closes.".to_owned()
            }
        };
        tracing::warn!(error = %why, kind = %message.message_type, "A handler failed.");
        if message.requires_response
            && let Err(error) = self.report_failure(&message).await
        {
            tracing::warn!(%error, "The sender was not told.");
        }
    }

    async fn report_failure(&self, message: &Envelope) -> Result<(), Error> {
        let why = format!("{} failed.", self.inner.agent_id);
        let fault = Fault::new(ErrorCode::InternalError, "", why, "Ask again later.");
        self.reply(message, MessageType::Error, &ErrorReport::from(&fault))
            .await
    }
}

/// Whether it is an alert of which the coordinator tells.
fn is_told(message: &Message) -> bool {
    message.message_type == MessageType::Alert
        && message.from_agent == Service::Coordinator.agent_id()
}
