//! The agents that are registered and their states, as far as this process knows: it follows the events of agents as they are
//! stored.
//!
//! It is a view to look things up in, never what an event is decided on: another process may know more.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use concord_domain::Versioned;
use concord_domain::aggregates::agent::{AgentMachine, AgentState};
use concord_events::Aggregate;
use concord_events::subject::{SystemFilters, SystemSubject};
use concord_events::topology::StreamKind;
use concord_events::{AgentEvent, StoredEvent};
use concord_wire::payload::Criteria;
use concord_wire::{AgentId, Token};
use futures::StreamExt;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use crate::broker::log_reader;
use crate::broker::wire_preferences::WirePreference;
use crate::broker::{Operation, followed};
use crate::error_chain::ErrorChain;
use crate::event_store::step::Aggregates;
use crate::service::ServiceRunner;
use crate::service::agent_index::AgentIndex;

/// Pause before the events are followed again when that failed.
const PAUSE: Duration = Duration::from_millis(500);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Registered agents. Cheap to share.
pub struct Directory {
    agents: RwLock<BTreeMap<AgentId, Versioned<AgentMachine>>>,
    /// How all that were ever registered are written to: who leaves is told so in its own dialect.
    preferences: RwLock<BTreeMap<AgentId, WirePreference>>,
    /// Who can do what; none where nobody asks for it.
    index: RwLock<Option<AgentIndex>>,
    changed: watch::Sender<u64>,
    loaded: watch::Sender<bool>,
    /// Where the last event stands that was read.
    position: Gauge,
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl Directory {
    /// Nobody is known, and nothing is followed; see [`Self::apply`].
    pub fn new() -> Self {
        Self {
            agents: RwLock::default(),
            preferences: RwLock::default(),
            index: RwLock::default(),
            changed: watch::Sender::new(0),
            loaded: watch::Sender::new(false),
            position: Gauge::default(),
        }
    }

    /// Follows the events of agents until the service stops; from now on agents are written to as their cards say.
    pub fn follow(runner: &ServiceRunner) -> Arc<Self> {
        let directory = Arc::new(Self::new());
        let known = Arc::clone(&directory);
        runner
            .broker
            .write_by_cards(Box::new(move |agent| known.preference_of(agent)));
        runner.knows(Arc::clone(&directory));
        runner.context().metrics.register_own(|registry| {
            registry.register(
                "agents_position",
                "Where the last event of an agent stands in the stream of events that this process has read.",
                directory.position.clone(),
            );
        });
        let (followed, reader, stop) =
            (Arc::clone(&directory), runner.clone(), runner.stop.clone());
        runner.spawn(async move {
            loop {
                let failed = tokio::select! {
                    failed = followed.read(&reader) => failed,
                    () = stop.cancelled() => break,
                };
                if let Err(error) = failed {
                    tracing::warn!(error = %ErrorChain(&*error), "The events of agents cannot be followed; trying again.");
                }
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = stop.cancelled() => break,
                }
            }
            // Nobody waits for what will not come.
            followed.loaded.send_replace(true);
        });
        directory
    }

    /// Reads what is stored, and then what comes; ends when the broker cannot be read.
    async fn read(&self, runner: &ServiceRunner) -> Result<(), AnyError> {
        let broker = &runner.broker;
        // The last event of each kind is enough: a card, a status or a departure replaces what was before.
        let filter = broker.subjects().events_of_kind(Aggregate::Agent);
        // The copy of a broker that has just come back may lack what is new.
        let last =
            log_reader::last(broker, StreamKind::Events, std::slice::from_ref(&filter)).await?;
        let last = last.map_or(0, |last| last.sequence);
        let config = pull::OrderedConfig {
            filter_subject: filter,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..followed(&broker.client)
        };
        let stream = broker.stream(StreamKind::Events).await?;
        let consumer = stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| Operation::FollowAgents.failed(error))?;
        let (mut left, mut seen) = (consumer.cached_info().num_pending, 0);
        let is_loaded = |left: u64, seen: u64| left == 0 && seen >= last;
        self.loaded
            .send_if_modified(|loaded| is_loaded(left, seen) && !std::mem::replace(loaded, true));
        let messages = consumer.messages().await;
        let mut messages = messages.map_err(|error| Operation::FollowAgents.failed(error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| Operation::FollowAgents.failed(error))?;
            let Ok(info) = message.info() else { continue };
            match StoredEvent::<AgentEvent>::decode(&message.payload, info.stream_sequence) {
                Ok(record) => self.apply(record),
                // What hides the last event of its kind must not make an agent a stranger.
                Err(concord_events::Error::NonEvent) => {
                    self.recover(runner, &message.subject).await?
                }
                Err(error) => {
                    tracing::warn!(subject = %message.subject, error = %ErrorChain(&error), "An event cannot be read.");
                }
            }
            left = left.saturating_sub(1);
            seen = info.stream_sequence;
            self.position.set(i64::try_from(seen).unwrap_or(i64::MAX));
            self.loaded.send_if_modified(|loaded| {
                is_loaded(left, seen) && !std::mem::replace(loaded, true)
            });
        }
        Ok(())
    }

    /// Reads an agent anew on one of whose subjects something else stands last. The event that it hides may be older than what is known
    /// of the agent, and would be passed over.
    async fn recover(&self, runner: &ServiceRunner, subject: &str) -> Result<(), AnyError> {
        if let Ok(SystemSubject::Event { id, .. }) = runner.broker.subjects().parse(subject) {
            let agents = Aggregates::new(runner.ports.clone(), &runner.cache);
            self.replace(&id, agents.load(&id).await?);
        }
        Ok(())
    }

    /// Waits until what was stored when it began to follow is known, or the service stops.
    pub async fn loaded(&self) {
        if self
            .loaded
            .subscribe()
            .wait_for(|loaded| *loaded)
            .await
            .is_err()
        {
            tracing::debug!("Nobody follows the events of agents any more.");
        }
    }

    /// Takes a registration into account before it comes by itself. Only that: it says everything of an agent. Another event that came before
    /// its registration would have this passed over as old.
    pub fn apply_early(&self, record: &StoredEvent<AgentEvent>) {
        if let AgentEvent::Registered(_) = record.event {
            self.apply(record.clone());
        }
    }

    /// Takes a stored event into account, as it comes or again.
    pub fn apply(&self, record: StoredEvent<AgentEvent>) {
        let id = record.meta.id.clone();
        self.change(&id, |known| {
            // What comes again, and late, is no news.
            let preference = match &record.event {
                AgentEvent::Registered(registered) if record.sequence > known.sequence() => {
                    Some(WirePreference::from(&registered.card))
                }
                _ => None,
            };
            known.apply(record);
            preference
        });
    }

    /// Takes all that was read of an agent for what is known of it, unless more is. Of one that there never was nothing is kept.
    fn replace(&self, id: &Token, read: Versioned<AgentMachine>) {
        if read.sequence() == 0 {
            return;
        }
        self.change(id, |known| {
            if read.sequence() < known.sequence() {
                return None;
            }
            *known = read;
            known.state.card.as_ref().map(WirePreference::from)
        });
    }

    /// Changes what is known of an agent; `change` says how it wants to be written to, where that is news.
    fn change(
        &self,
        id: &Token,
        change: impl FnOnce(&mut Versioned<AgentMachine>) -> Option<WirePreference>,
    ) {
        let Ok(agent) = AgentId::new(id.as_str()) else {
            return;
        };
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        let known = agents.entry(agent.clone()).or_default();
        let before = known.state.card.clone();
        if let Some(preference) = change(known) {
            let mut preferences = self
                .preferences
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            preferences.insert(agent.clone(), preference);
        }
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = index.as_mut() {
            index.replace(&agent, before.as_ref(), known.state.card.as_ref());
        }
        drop((index, agents));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Shows every registered agent, without copying any.
    pub fn each(&self, mut look: impl FnMut(&AgentId, &AgentState)) {
        self.read_agents(|agents| {
            let registered = agents
                .iter()
                .filter(|(_, known)| known.state.card.is_some());
            registered.for_each(|(agent, known)| look(agent, &known.state));
        });
    }

    /// Who is registered, by id.
    pub fn names(&self) -> Vec<AgentId> {
        let mut names = Vec::new();
        self.each(|agent, _| names.push(agent.clone()));
        names
    }

    fn read_agents<T>(
        &self,
        read: impl FnOnce(&BTreeMap<AgentId, Versioned<AgentMachine>>) -> T,
    ) -> T {
        read(&self.agents.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of an agent; none when it is not registered.
    pub fn agent(&self, agent: &AgentId) -> Option<Arc<AgentState>> {
        self.read_agents(|agents| agents.get(agent).map(|known| known.state.clone()))
            .filter(|state| state.card.is_some())
    }

    /// All that are registered, by id.
    pub fn agents(&self) -> Vec<(AgentId, Arc<AgentState>)> {
        self.read_agents(|agents| {
            let registered = agents
                .iter()
                .filter(|(_, known)| known.state.card.is_some());
            registered
                .map(|(agent, known)| (agent.clone(), known.state.clone()))
                .collect()
        })
    }

    /// Keeps an index of who can do what from now on, for [`Self::find`].
    pub fn keep_index(&self) {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = AgentIndex::new();
        for (agent, known) in agents.iter() {
            new.replace(agent, None, known.state.card.as_ref());
        }
        *index = Some(new);
    }

    /// At most `most` agents that fit the criteria, whatever their status, with how well they fit and how they are: in the order of
    /// their ids from the one after `after` on and around.
    pub fn find(
        &self,
        criteria: &Criteria,
        after: Option<&AgentId>,
        most: usize,
        fits: impl Fn(&AgentId, &AgentState) -> bool,
    ) -> Vec<(AgentId, f64, Arc<AgentState>)> {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = index.as_ref() else {
            return Vec::new();
        };
        let state = |agent: &AgentId| agents.get(agent).map(|known| &known.state);
        let fits = |agent: &AgentId| state(agent).is_some_and(|state| fits(agent, state));
        let found = index.find(criteria, after, most, fits).into_iter();
        found
            .filter_map(|(agent, score)| Some((agent.clone(), score, state(&agent)?.clone())))
            .collect()
    }

    /// How an agent wants to be written to; none when it was never registered.
    pub(crate) fn preference_of(&self, agent: &AgentId) -> Option<WirePreference> {
        self.preferences
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(agent)
            .copied()
    }

    /// Changes with every event of an agent that comes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests;
