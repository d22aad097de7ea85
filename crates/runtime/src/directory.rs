//! Who is registered and how they are, as far as this process has heard: the facts of agents, followed as they are stored.
//!
//! It is a view to look things up in, never what a fact is decided on: another process may know more.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use concord_domain::Versioned;
use concord_domain::agent::{AgentMachine, AgentState};
use concord_protocol::event::{AgentEvent, Record};
use concord_protocol::stream::StreamKind;
use concord_protocol::subject::Aggregate;
use concord_protocol::{AgentId, Dialect};
use futures::StreamExt;
use tokio::sync::watch;

use crate::broker::{Broker, unavailable};
use crate::consume::Chain;
use crate::ledger::Error;
use crate::service::Shell;

/// Pause before the facts are followed again when that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Registered agents. Cheap to share.
pub struct Directory {
    agents: RwLock<BTreeMap<AgentId, Versioned<AgentMachine>>>,
    changed: watch::Sender<u64>,
}

impl Directory {
    /// Follows the facts of agents until the service stops. From now on the service writes to agents in the dialects of
    /// their cards.
    pub fn follow(shell: &Shell) -> Arc<Self> {
        let directory = Arc::new(Self { agents: RwLock::default(), changed: watch::Sender::new(0) });
        let spoken = Arc::clone(&directory);
        shell.broker.speak(Box::new(move |agent| spoken.dialect_of(agent)));
        let (followed, broker, stop) = (Arc::clone(&directory), shell.broker.clone(), shell.stop.clone());
        shell.spawn(async move {
            loop {
                let failed = tokio::select! {
                    failed = followed.read(&broker) => failed,
                    () = stop.cancelled() => return,
                };
                if let Err(error) = failed {
                    tracing::warn!(error = %Chain(&error), "The facts of agents cannot be followed; trying again.");
                }
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = stop.cancelled() => return,
                }
            }
        });
        directory
    }

    /// Reads what is stored, and then what comes; ends when the broker cannot be read.
    async fn read(&self, broker: &Broker) -> Result<(), Error> {
        // The last fact of each kind is enough: a card, a status or a departure replaces what was before.
        let config = pull::OrderedConfig {
            filter_subject: broker.subjects().facts_of(Aggregate::Agent),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..pull::OrderedConfig::default()
        };
        let stream = broker.stream(StreamKind::Events).await?;
        let consumer = stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| unavailable("follow the facts of agents", error))?;
        let messages = consumer.messages().await;
        let mut messages = messages.map_err(|error| unavailable("follow the facts of agents", error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| unavailable("give a fact of an agent", error))?;
            let Ok(info) = message.info() else { continue };
            match Record::<AgentEvent>::decode(&message.payload, info.stream_sequence) {
                Ok(record) => self.apply(record),
                Err(error) => {
                    tracing::warn!(subject = %message.subject, error = %Chain(&error), "A fact cannot be read.");
                }
            }
        }
        Ok(())
    }

    fn apply(&self, record: Record<AgentEvent>) {
        let Ok(agent) = AgentId::new(record.meta.id.as_str()) else { return };
        self.agents.write().unwrap_or_else(PoisonError::into_inner).entry(agent).or_default().apply(record);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Shows every registered agent, without copying any.
    pub fn each(&self, mut look: impl FnMut(&AgentId, &AgentState)) {
        self.read_agents(|agents| {
            let registered = agents.iter().filter(|(_, known)| known.state.card.is_some());
            registered.for_each(|(agent, known)| look(agent, &known.state));
        });
    }

    fn read_agents<T>(&self, read: impl FnOnce(&BTreeMap<AgentId, Versioned<AgentMachine>>) -> T) -> T {
        read(&self.agents.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of an agent; none when it is not registered.
    pub fn agent(&self, agent: &AgentId) -> Option<AgentState> {
        self.read_agents(|agents| agents.get(agent).map(|known| known.state.clone()))
            .filter(|state| state.card.is_some())
    }

    /// All that are registered, by id.
    pub fn agents(&self) -> Vec<(AgentId, AgentState)> {
        self.read_agents(|agents| {
            let registered = agents.iter().filter(|(_, known)| known.state.card.is_some());
            registered.map(|(agent, known)| (agent.clone(), known.state.clone())).collect()
        })
    }

    /// How an agent wants to be written to; none when it is not registered.
    pub fn dialect_of(&self, agent: &AgentId) -> Option<Dialect> {
        self.read_agents(|agents| {
            agents.get(agent).and_then(|known| known.state.card.as_ref().map(|card| card.dialect))
        })
    }

    /// Changes with every fact that is heard.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
