//! Putting an agent together.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use async_nats::ConnectOptions;
use concord_events::topology::{Layout, StorageChoices};
use concord_wire::payload::{Card, CardAction, Skill};
use concord_wire::{AgentId, Fault, MessageType, Token};

use crate::{Agent, Error, Message};

type Running = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Agent, Message) -> Running + Send + Sync>;

/// What handles a message.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_type: HashMap<MessageType, Handler>,
    other: Option<Handler>,
}

impl Handlers {
    pub(crate) fn of(&self, kind: &MessageType) -> Option<&Handler> {
        self.by_type.get(kind).or(self.other.as_ref())
    }
}

/// An agent that is being put together.
#[must_use]
pub struct Builder {
    pub(crate) agent_id: Result<AgentId, Fault>,
    pub(crate) prefix: String,
    pub(crate) durable: bool,
    pub(crate) compress_over: Option<usize>,
    pub(crate) card: Option<Card>,
    pub(crate) handlers: Handlers,
    pub(crate) options: ConnectOptions,
}

impl Builder {
    pub(crate) fn new(agent_id: &str) -> Self {
        let named = AgentId::new(agent_id).map_err(|error| {
            Fault::invalid(
                "/agent_id",
                format!("The name {agent_id:?} {error}."),
                "Use letters, digits, _ and -.",
            )
        });
        Self {
            options: ConnectOptions::new().name(agent_id),
            agent_id: named,
            prefix: concord_wire::subject::DEFAULT_PREFIX.to_owned(),
            durable: false,
            compress_over: None,
            card: None,
            handlers: Handlers::default(),
        }
    }

    /// Handles messages of a type, each on a task of its own. An error is logged, and told to a sender that waits.
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

    /// Handles messages of the types that have no handler.
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

    /// Messages wait in the broker while the agent is away; otherwise it hears what is said while it is connected.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Compresses messages with more bytes than this, where whoever they are for is known to read it: a service, or an agent
    /// that has joined meanwhile and whose card says so.
    pub fn compress_over(mut self, bytes: usize) -> Self {
        self.compress_over = Some(bytes);
        self
    }

    /// Registers with the coordinator when it connects, as this card.
    pub fn card(mut self, card: Card) -> Self {
        self.card = Some(card);
        self
    }

    /// Registers with this skill, beside those stated before.
    pub fn skill(mut self, skill: Skill) -> Self {
        if let Ok(agent_id) = &self.agent_id {
            self.card
                .get_or_insert_with(|| Card::new(agent_id.clone()))
                .skills
                .push(skill);
        }
        self
    }

    /// Registers with this action, beside those stated before: requests for it that do not fit its schema are refused.
    pub fn action(mut self, action: CardAction) -> Self {
        if let Ok(agent_id) = &self.agent_id {
            self.card
                .get_or_insert_with(|| Card::new(agent_id.clone()))
                .actions
                .push(action);
        }
        self
    }

    /// Another first token of every subject than `concord`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// How to connect: credentials, certificates and the like.
    pub fn options(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// Connects, listens, and registers where there is a card.
    pub async fn connect(self, servers: &str) -> Result<Agent, Error> {
        Agent::connect(self, servers).await
    }

    /// Connects, and serves until the process is interrupted.
    pub async fn run(self, servers: &str) -> Result<(), Error> {
        let agent = self.connect(servers).await?;
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "Interruptions are not noticed.");
        }
        agent.close().await
    }

    pub(crate) fn layout(&self) -> Result<Layout, Fault> {
        let prefix = Token::new(self.prefix.as_str());
        let prefix = prefix.map_err(|error| {
            Fault::invalid("/prefix", format!("The prefix {error}."), "Use a token.")
        })?;
        Ok(Layout::new(&prefix, StorageChoices::default()))
    }
}
