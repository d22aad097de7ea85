//! Shared memory: what this agent knows, for others to read, and what others know.

use concord_wire::payload::{
    Checkpoint, MEMORY_PUT, MemoryEntry, MemoryListing, Reach, Remember, Snapshot,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, MessageType, Recipient, Token};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::REQUEST_TIMEOUT;
use crate::{Agent, Error, Message};

/// That something is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Kept {
    /// The topic.
    pub topic: Token,
    /// Its version, from 1.
    pub version: u64,
    /// The first snapshot that has this version.
    pub since: Snapshot,
    /// Whom it reaches without being asked for. None outside cases, and where the case's policy tells nothing.
    #[serde(default)]
    pub reach: Option<Reach>,
}

/// What memory holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Recalled<T> {
    /// The snapshot that this is of: asked for again as of it, the answer is the same.
    pub as_of: Snapshot,
    /// What stands there.
    pub entries: Vec<T>,
    /// Whether there is more than one answer has room for.
    #[serde(default)]
    pub more: bool,
    /// With insights: the checkpoints that the case has come to.
    #[serde(default)]
    pub checkpoints: Vec<Checkpoint>,
}

/// What the coordinator is asked; what is none is left out.
#[derive(Debug, Clone, Default, Serialize)]
struct Asked<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<Snapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    case_id: Option<&'a CaseId>,
    history: bool,
    insights: bool,
    after: u64,
}

/// The memory of an agent, which it alone writes, and a look into that of others.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    agent: &'a Agent,
}

impl Agent {
    /// What this agent knows, for others to read, and what others know.
    pub fn memory(&self) -> Memory<'_> {
        Memory { agent: self }
    }
}

impl Memory<'_> {
    /// Writes a topic of this agent's own memory, and waits up to 30 seconds until it is kept. What belongs to a case is read by whoever is
    /// in the case, everything else by everybody. [`Error::Refused`] says what is wrong and what to do; after
    /// [`Error::Timeout`] nobody knows whether it is kept, and the same again is another version.
    pub async fn put(&self, entry: &Remember, case_id: Option<&CaseId>) -> Result<Kept, Error> {
        let request = json!({ "action": MEMORY_PUT, "parameters": entry });
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let message = Message {
            case_id: case_id.cloned(),
            ..self.agent.message(to, MessageType::Request, &request)?
        };
        // Held while a debate takes its snapshot.
        let _writing = self.agent.inner.memory.write().await;
        let kept = self.agent.ask(message, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_value(kept)?)
    }

    /// A topic of an agent's memory as it stands, or as of a snapshot, which answers the same for ever. None where there is none, or
    /// none that this agent may read.
    pub async fn get(
        &self,
        agent: &AgentId,
        topic: &Token,
        as_of: Option<Snapshot>,
    ) -> Result<Option<MemoryEntry>, Error> {
        let asked = Asked {
            agent: Some(agent),
            topic: Some(topic),
            as_of,
            ..Asked::default()
        };
        let recalled: Recalled<MemoryEntry> = self.ask(&asked).await?;
        Ok(recalled.entries.into_iter().next())
    }

    /// The topics of an agent's memory, or those that belong to a case, without their values.
    pub async fn list(
        &self,
        agent: Option<&AgentId>,
        case_id: Option<&CaseId>,
        as_of: Option<Snapshot>,
    ) -> Result<Recalled<MemoryListing>, Error> {
        self.ask(&Asked {
            agent,
            case_id,
            as_of,
            ..Asked::default()
        })
        .await
    }

    /// What everybody in a case was told of, as it stands, with its values and whose memory it is in.
    pub async fn insights(&self, case_id: &CaseId) -> Result<Recalled<MemoryEntry>, Error> {
        self.ask(&Asked {
            case_id: Some(case_id),
            insights: true,
            ..Asked::default()
        })
        .await
    }

    /// Every version of a topic, the oldest first.
    pub async fn history(&self, agent: &AgentId, topic: &Token) -> Result<Vec<MemoryEntry>, Error> {
        let mut entries: Vec<MemoryEntry> = Vec::new();
        let mut as_of = None;
        loop {
            let after = entries.last().map_or(0, |entry| entry.listing.version);
            let asked = Asked {
                agent: Some(agent),
                topic: Some(topic),
                as_of,
                history: true,
                after,
                ..Asked::default()
            };
            let page: Recalled<MemoryEntry> = self.ask(&asked).await?;
            as_of = Some(page.as_of);
            let is_last = !page.more || page.entries.is_empty();
            entries.extend(page.entries);
            if is_last {
                return Ok(entries);
            }
        }
    }

    async fn ask<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<T, Error> {
        self.agent
            .query(Service::Coordinator, "memory", asked)
            .await
    }
}
