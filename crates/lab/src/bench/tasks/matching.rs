//! How long it takes to find who can do something: the answer of the coordinator, and the matching alone.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::Client;
use concord_events::{AgentEvent, AgentRegistered, CardChange, EventMeta, StoredEvent};
use concord_runtime::Directory;
use concord_wire::payload::{Card, Criteria};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::numbers::{percentile_ms, round};
use super::super::subjects;
use super::cards;

/// Questions of each kind.
const ASKED: usize = 500;

/// How long finding takes.
#[derive(Debug, Clone, Serialize)]
pub(in super::super) struct MatchingReport {
    /// `find_agents` by a skill, asked of the coordinator by request and reply.
    pub(in super::super) by_skill: Found,
    /// The same by a text.
    pub(in super::super) by_text: Found,
    /// The matching alone, by a skill, without broker and service.
    pub(in super::super) alone_by_skill: Found,
    /// The same by a text.
    pub(in super::super) alone_by_text: Found,
}

/// The times of some questions.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in super::super) struct Found {
    /// 50th percentile, in milliseconds.
    pub(in super::super) p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub(in super::super) p99_ms: f64,
    /// Agents found by one question, on average.
    pub(in super::super) agents: f64,
}

impl Found {
    fn of(mut times: Vec<Duration>, agents: usize) -> Self {
        times.sort();
        Self {
            p50_ms: percentile_ms(&times, 0.50),
            p99_ms: percentile_ms(&times, 0.99),
            agents: round(agents as f64 / times.len().max(1) as f64),
        }
    }
}

type Asked = fn(usize, usize) -> Value;

/// Measures all of it with so many agents, which are registered.
pub(super) async fn measure(client: &Client, agents: usize) -> anyhow::Result<MatchingReport> {
    let directory = directory(agents)?;
    Ok(MatchingReport {
        by_skill: ask(client, agents, cards::by_skill).await?,
        by_text: ask(client, agents, cards::by_text).await?,
        alone_by_skill: alone(&directory, agents, cards::by_skill)?,
        alone_by_text: alone(&directory, agents, cards::by_text)?,
    })
}

async fn ask(client: &Client, agents: usize, criteria: Asked) -> anyhow::Result<Found> {
    let subject = subjects::api(Service::Coordinator, "find_agents");
    let mut times = Vec::with_capacity(ASKED);
    let mut found = 0;
    for number in 0..ASKED {
        let asked = json!({ "criteria": criteria(number, agents), "available": true });
        let started = Instant::now();
        let answer = client
            .request(subject.clone(), asked.to_string().into())
            .await?;
        times.push(started.elapsed());
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        let Some(named) = answer.get("agents").and_then(Value::as_array) else {
            bail!("find_agents was not answered: {answer}");
        };
        found += named.len();
    }
    Ok(Found::of(times, found))
}

fn alone(directory: &Directory, agents: usize, criteria: Asked) -> anyhow::Result<Found> {
    let mut times = Vec::with_capacity(ASKED);
    let mut found = 0;
    for number in 0..ASKED {
        let criteria: Criteria = serde_json::from_value(criteria(number, agents))?;
        let started = Instant::now();
        found += directory.find(&criteria, None, 64, |_, _| true).len();
        times.push(started.elapsed());
    }
    Ok(Found::of(times, found))
}

/// The register as the coordinator has it in memory.
fn directory(agents: usize) -> anyhow::Result<Directory> {
    let directory = Directory::new();
    directory.keep_index();
    for number in 0..agents {
        let card: Card = serde_json::from_value(cards::card(number))?;
        let agent: AgentId = card.agent_id.clone();
        let event_id = MessageId::new(format!("registered-{number}"))
            .ok()
            .context("an id")?;
        let meta = EventMeta {
            id: agent.token(),
            at: Timestamp::default(),
            cause: event_id.clone(),
            event_id,
            deadlines: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            earlier: Vec::new(),
            memory_snapshot: None,
            state: None,
        };
        let event = AgentEvent::Registered(AgentRegistered {
            card,
            change: CardChange::Joined,
            by: agent,
            request_id: None,
        });
        directory.apply(StoredEvent {
            meta,
            sequence: number as u64 + 1,
            event,
        });
    }
    Ok(directory)
}
