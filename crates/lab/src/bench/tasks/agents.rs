//! The agents of the measurement: many names on one connection, which answer at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use async_nats::{Client, Message};
use concord_wire::subject::{Subject, SubjectSpace};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::{driver, subjects};
use super::{cards, said_by_coordinator};

/// How long registering may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many register at once.
const AT_ONCE: usize = 64;

/// What each agent was given.
type Given = Arc<Mutex<BTreeMap<String, u64>>>;

/// The agents, until this is dropped.
pub(super) struct Agents {
    count: usize,
    given: Given,
    answering: JoinHandle<()>,
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

impl Agents {
    /// Registers so many agents, which then answer.
    pub(super) async fn register(url: &str, count: usize) -> anyhow::Result<Self> {
        let client = driver::connect(url).await?;
        let mut heard = client.subscribe(said_by_coordinator()).await?;
        client.flush().await?;
        let mut registered = 0;
        let mut asked = 0;
        while registered < count {
            while asked < count && asked - registered < AT_ONCE {
                register(&client, asked).await?;
                asked += 1;
            }
            let said = tokio::time::timeout(PATIENCE, heard.next()).await;
            let said = said.context("the agents were not all registered in time")?;
            let said = said.context("the connection to the broker has ended")?;
            if kind_of(&said).is_some_and(|(_, kind)| kind == "response") {
                registered += 1;
            }
        }
        let given = Given::default();
        let counted = Arc::clone(&given);
        let answering = tokio::spawn(async move {
            while let Some(said) = heard.next().await {
                if let Err(error) = answer(&client, &said, &counted).await {
                    eprintln!("an agent did not answer: {error:#}");
                }
            }
        });
        Ok(Self {
            count,
            given,
            answering,
        })
    }

    /// Counts anew.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// How much work was given to all, and by how much the agent with most and the agent with least differ.
    pub(super) fn given(&self) -> (u64, u64) {
        let given = self.lock();
        let all = given.values().sum();
        let most = given.values().max().copied().unwrap_or_default();
        let least = given.values().min().copied().unwrap_or_default();
        let least = if given.len() < self.count { 0 } else { least };
        (all, most - least)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn register(client: &Client, number: usize) -> anyhow::Result<()> {
    let name = cards::name(number);
    let payload = json!({ "action": "register_agent", "parameters": cards::card(number) });
    say(
        client,
        None,
        &name,
        "request",
        &format!("register-{name}"),
        &payload,
        None,
    )
    .await
}

/// To whom a message of the coordinator is, and its type.
fn kind_of(said: &Message) -> Option<(String, String)> {
    match SubjectSpace::default().parse(&said.subject) {
        Ok(Subject::Message { to, kind, .. }) => Some((to.to_string(), kind.as_str().to_owned())),
        _ => None,
    }
}

async fn answer(client: &Client, said: &Message, given: &Given) -> anyhow::Result<()> {
    let Some((agent, kind)) = kind_of(said).filter(|(to, _)| to.starts_with("w-")) else {
        return Ok(());
    };
    if !matches!(
        kind.as_str(),
        "task_assignment" | "award" | "call_for_proposals"
    ) {
        return Ok(());
    }
    let message: Value = serde_json::from_slice(&said.payload)?;
    let is_work = message.pointer("/payload/work").is_some();
    let (kind, payload) = match kind.as_str() {
        "call_for_proposals" => (
            "bid",
            json!({ "price": 1.0, "time_ms": 1, "confidence": 0.9 }),
        ),
        "award" => ("task_result", json!({ "result": "yes" })),
        _ if is_work => ("task_result", json!({ "result": "yes" })),
        _ => (
            "finding",
            json!({ "summary": "Measured.", "risk_score": 10 }),
        ),
    };
    if kind != "bid" {
        let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
        *given.entry(agent.clone()).or_default() += 1;
    }
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    let asked = text("message_id").unwrap_or_default().to_owned();
    let case = text("case_id").map(str::to_owned);
    let id = format!("{asked}-{agent}");
    say(
        client,
        case.as_deref(),
        &agent,
        kind,
        &id,
        &payload,
        Some(&asked),
    )
    .await
}

async fn say(
    client: &Client,
    case: Option<&str>,
    from: &str,
    kind: &str,
    id: &str,
    payload: &Value,
    reply_to: Option<&str>,
) -> anyhow::Result<()> {
    let message = json!({
        "message_id": id, "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": from, "to_agent": "coordinator",
        "message_type": kind, "case_id": case, "reply_to": reply_to, "correlation_id": reply_to, "payload": payload,
    });
    let subject = match case {
        Some(case) => subjects::message(case, from, "coordinator", kind)?,
        None => subjects::message_outside_cases(from, "coordinator", kind)?,
    };
    Ok(client.publish(subject, message.to_string().into()).await?)
}
