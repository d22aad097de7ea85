//! The builder of an agent: its name, its handlers and its connection.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;
use concord_wire::payload::notification::{EventData, NotificationData};
use concord_wire::payload::{Card, CardAction, Notification, Skill};
use concord_wire::subject::SubjectSpace;
use concord_wire::{AgentId, Fault, MessageType, Token};
use serde::de::DeserializeOwned;

use crate::closing::CLOSE_WITHIN;
use crate::{Agent, Error, Message};

type HandlerFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Agent, Message) -> HandlerFuture + Send + Sync>;

fn read_data<T: DeserializeOwned>(told: &Notification) -> Result<T, Fault> {
    concord_wire::envelope::from_json(told.data.to_string().as_bytes(), "/payload/data")
}

/// The handlers of an agent.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_type: HashMap<MessageType, Handler>,
    by_event: HashMap<&'static str, Handler>,
    /// What is done before a snapshot is taken. It has no type and no event: anybody may send a message of any type.
    pub(crate) memory_sync: Option<Handler>,
    other: Option<Handler>,
    hears_all: HashSet<MessageType>,
}

impl Handlers {
    pub(crate) fn handler_of(&self, kind: &MessageType) -> Option<&Handler> {
        self.by_type.get(kind).or(self.other.as_ref())
    }

    /// The handler of a message: that of its event, where it is a notification of Concord that has one, else that of its type.
    pub(crate) fn handler_for(&self, message: &Message) -> Option<&Handler> {
        let of_event = || {
            if self.by_event.is_empty() || message.message_type != MessageType::Notification {
                return None;
            }
            let told: Notification = message.payload().ok()?;
            let known = NotificationData::ALL
                .iter()
                .find(|info| info.event == told.event)?;
            let is_of_service = message.from_agent == known.from.agent_id();
            is_of_service.then(|| self.by_event.get(known.event))?
        };
        of_event().or_else(|| self.handler_of(&message.message_type))
    }

    /// Whether messages of this type are handled that have not woken the agent.
    pub(crate) fn hears_all(&self, kind: &MessageType) -> bool {
        self.hears_all.contains(kind)
    }
}

/// Builds an agent; [`Agent::builder`] begins one.
#[must_use]
pub struct Builder {
    pub(crate) agent_id: Result<AgentId, Fault>,
    pub(crate) prefix: String,
    pub(crate) hears: Hears,
    pub(crate) compress_over: Option<usize>,
    pub(crate) close_within: Duration,
    pub(crate) card: Option<Card>,
    pub(crate) stays_registered: bool,
    pub(crate) handlers: Handlers,
    pub(crate) options: ConnectOptions,
}

/// What an agent hears of what is said to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    /// What is sent while it is connected.
    WhileConnected,
    /// What the broker keeps for it in an inbox that it makes itself.
    OwnInbox,
    /// What the broker keeps for it in an inbox that operators have made.
    RegisteredInbox,
}

impl Builder {
    pub(crate) fn new(agent_id: &str) -> Self {
        let checked = AgentId::new(agent_id).map_err(|error| {
            Fault::invalid(
                "/agent_id",
                format!("The name {agent_id:?} {error}."),
                "Use letters, digits, _ and -.",
            )
        });
        Self {
            options: ConnectOptions::new().name(agent_id),
            agent_id: checked,
            prefix: concord_wire::subject::DEFAULT_PREFIX.to_owned(),
            hears: Hears::WhileConnected,
            compress_over: None,
            close_within: CLOSE_WITHIN,
            card: None,
            stays_registered: false,
            handlers: Handlers::default(),
        }
    }

    /// Sets the handler of a message type. Each message is handled on a task of its own. An error is logged, and sent to the
    /// sender if it waits for an answer.
    pub fn on<F, R>(mut self, kind: MessageType, handler: F) -> Self
    where
        F: Fn(Agent, Message) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.handlers.by_type.insert(
            kind,
            Arc::new(move |agent, message| Box::pin(handler(agent, message))),
        );
        self
    }

    /// Sets what is done before a debate takes its snapshot of shared memory: the handler writes what is not there yet
    /// ([`Memory::put`](crate::Memory::put)). Further writes are held until the snapshot is taken, or its time is over.
    pub fn on_memory_sync<F, R>(mut self, handler: F) -> Self
    where
        F: Fn(Agent, Message) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.handlers.memory_sync = Some(Arc::new(move |agent, message| {
            Box::pin(handler(agent, message))
        }));
        self
    }

    /// Sets the handler of one notification of Concord, for example of how a debate of the agent's case has ended
    /// ([`DebateConcluded`](crate::payload::notification::DebateConcluded)). It is given the message and its data.
    pub fn on_notification<T, F, R>(mut self, handler: F) -> Self
    where
        T: EventData + DeserializeOwned + Send + 'static,
        F: Fn(Agent, Message, T) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let typed: Handler = Arc::new(move |agent, message| {
            let read = message
                .payload()
                .and_then(|told: Notification| read_data::<T>(&told));
            match read {
                Ok(data) => Box::pin(handler(agent, message, data)),
                Err(fault) => Box::pin(std::future::ready(Err(fault.into()))),
            }
        });
        self.handlers.by_event.insert(T::EVENT, typed);
        self
    }

    /// Handles every question to the group of this type that the agent hears. Otherwise a `group_query`, `peer_request` or
    /// `expertise_offer` is handled when it has woken the agent; [`Wake::of`](crate::Wake::of) says why.
    pub fn hear_all(mut self, kind: MessageType) -> Self {
        self.handlers.hears_all.insert(kind);
        self
    }

    /// Sets the handler of all message types that have none of their own.
    pub fn on_other<F, R>(mut self, handler: F) -> Self
    where
        F: Fn(Agent, Message) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.handlers.other = Some(Arc::new(move |agent, message| {
            Box::pin(handler(agent, message))
        }));
        self
    }

    /// Keeps messages in the broker while the agent is not connected. Without this the agent receives only what is sent while
    /// it is connected.
    pub fn durable(mut self) -> Self {
        self.hears = Hears::OwnInbox;
        self
    }

    /// Takes what the broker keeps for the agent in its durable inbox, while it is away, too. The inbox is made when the agent connects, if it
    /// is on the register by then, or by an operator (`concord agents register --inbox`), who alone removes it (`concord agents deregister`).
    /// The agent's user needs no rights beyond those that `concord permissions` prints.
    pub fn registered_inbox(mut self) -> Self {
        self.hears = Hears::RegisteredInbox;
        self
    }

    /// Compresses messages with more bytes than this if the recipient is known to read gzip: a service, or an agent that has
    /// registered since this agent connected and whose card says so.
    pub fn compress_over(mut self, bytes: usize) -> Self {
        self.compress_over = Some(bytes);
        self
    }

    /// Sets how long handlers may go on when the agent closes, 30 seconds by default. Those that go on for longer are cut off; who waits
    /// for their answers is told that they failed, and the log says what kinds of messages they handled.
    pub fn close_within(mut self, time: Duration) -> Self {
        self.close_within = time;
        self
    }

    /// Registers the agent with the coordinator, with this card, when it connects.
    pub fn card(mut self, card: Card) -> Self {
        self.card = Some(card);
        self
    }

    /// Leaves the agent on the register when it closes: for a process in whose place another one comes, which may have registered the agent
    /// by then. Let its card promise heartbeats, so that it is unavailable where none comes.
    pub fn stays_registered(mut self) -> Self {
        self.stays_registered = true;
        self
    }

    /// Adds a skill to the card.
    pub fn skill(mut self, skill: Skill) -> Self {
        if let Ok(agent_id) = &self.agent_id {
            self.card
                .get_or_insert_with(|| Card::new(agent_id.clone()))
                .skills
                .push(skill);
        }
        self
    }

    /// Adds an action to the card. Requests for it whose parameters do not fit its schema are refused.
    pub fn action(mut self, action: CardAction) -> Self {
        if let Ok(agent_id) = &self.agent_id {
            self.card
                .get_or_insert_with(|| Card::new(agent_id.clone()))
                .actions
                .push(action);
        }
        self
    }

    /// Sets the prefix of the installation, the first token of every subject; `concord` by default.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Sets the options of the connection: credentials, certificates and the like.
    pub fn options(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// Connects, begins to receive messages, and registers if the agent has a card. An agent without a card and without a durable inbox
    /// misses what others send before the broker has read its subscriptions; it has read them when it has stored the first message
    /// that the agent publishes.
    pub async fn connect(self, servers: &str) -> Result<Agent, Error> {
        Agent::connect(self, servers).await
    }

    /// Connects, and handles messages until the process is asked to stop (SIGTERM, Ctrl-C) or a handler closes the agent.
    pub async fn run(self, servers: &str) -> Result<(), Error> {
        let agent = self.connect(servers).await?;
        let begun = &agent.inner.closing.begun;
        if let Some(Err(error)) = begun.run_until_cancelled(asked_to_stop()).await {
            tracing::warn!(%error, "Signals are not noticed.");
            begun.cancelled().await;
        }
        agent.close().await
    }

    pub(crate) fn subjects(&self) -> Result<SubjectSpace, Fault> {
        let prefix = Token::new(self.prefix.as_str());
        let prefix = prefix.map_err(|error| {
            Fault::invalid("/prefix", format!("The prefix {error}."), "Use a token.")
        })?;
        Ok(SubjectSpace::new(&prefix))
    }
}

/// Returns when the process is asked to stop.
async fn asked_to_stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
