//! How long the parties of a debate hold what they write: from when each is asked to write what it knows until it is told the snapshot
//! that the debate refers to. The parties acknowledge at once.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use async_nats::Client;
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

use super::agents::program::{Agent, Asked};
use super::measurements::Options;
use super::quiet::AnswerTimes;
use super::{driver, installation, subjects};

/// The parties, and the score that each finds.
const PARTIES: [(&str, u32); 2] = [("party-1", 10), ("party-2", 80)];
/// The most that the policy lets a debate wait for its parties, in milliseconds.
const SYNC_MS: u32 = 2_000;
/// The time within which the next party must be told a snapshot.
const PATIENCE: Duration = Duration::from_secs(60);

/// The snapshots of debates.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SnapshotsReport {
    /// Debates of two parties each.
    pub(super) debates: usize,
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// How long each party has held what it writes.
    pub(super) held: AnswerTimes,
    /// Parties that were named as silent.
    pub(super) silent: usize,
}

/// What one party was told.
struct Released {
    held_ms: f64,
    silent: usize,
}

/// Has debates begin, as many cases at once as the options say.
pub(super) async fn measure(options: &Options, debates: usize) -> anyhow::Result<SnapshotsReport> {
    let plan = installation::unlimited(options, "snapshots");
    let installation = installation::start(options, plan).await?;
    installation::free_openers(&installation).await?;
    let client = driver::connect(installation.server_url()).await?;
    let (told, mut heard) = unbounded_channel();
    for party in PARTIES {
        take_part(&client, party, told.clone()).await?;
    }
    let participants = PARTIES.map(|(name, _)| name.to_owned());
    let policy = json!({ "preset": "contract-review", "rounds_max": 1, "memory_sync_ms": SYNC_MS });
    let concurrency = options.replicas_concurrency;
    let (mut held, mut silent, mut opened) = (Vec::new(), 0, 0);
    while held.len() < debates * PARTIES.len() {
        while opened < debates && opened * PARTIES.len() < held.len() + concurrency * PARTIES.len()
        {
            driver::open(&client, &format!("synced-{opened}"), &policy, &participants).await?;
            opened += 1;
        }
        let released = timeout(PATIENCE, heard.recv()).await;
        let released: Released = released
            .context("no party was told a snapshot")?
            .context("the parties have ended")?;
        held.push(released.held_ms);
        silent += released.silent;
    }
    installation.stop().await;
    Ok(SnapshotsReport {
        debates,
        concurrency,
        held: AnswerTimes::of(held),
        silent: silent / PARTIES.len(),
    })
}

/// What of a message is read here; only a notification has an event.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(default)]
    event: Option<&'a str>,
    #[serde(default)]
    data: Data,
}

#[derive(Deserialize, Default)]
struct Data {
    #[serde(default)]
    silent: Vec<String>,
}

/// A party of all debates.
struct Party {
    agent: Agent,
    /// When it was asked to write what it knows, by case.
    asked: HashMap<String, Instant>,
    told: UnboundedSender<Released>,
}

impl Party {
    /// The subject and the body of what it answers, if it answers.
    fn hear(&mut self, body: &[u8]) -> Option<(String, Value)> {
        let said: Said<'_> = serde_json::from_slice(body).ok()?;
        let message: Asked<'_> = serde_json::from_slice(body).ok()?;
        match said.payload.event {
            Some("memory_sync") => {
                self.asked
                    .insert(message.case_id.to_owned(), Instant::now());
                self.agent.reply(&message, "acknowledgement", json!({}))
            }
            Some("memory_synced") => {
                let at = self.asked.remove(message.case_id)?;
                let released = Released {
                    held_ms: at.elapsed().as_secs_f64() * 1_000.0,
                    silent: said.payload.data.silent.len(),
                };
                // Nobody listens any more when the measurement has ended.
                let _ = self.told.send(released);
                None
            }
            _ => self.agent.answer(body),
        }
    }
}

/// Lets a party answer until the measurement ends.
async fn take_part(
    client: &Client,
    (name, score): (&str, u32),
    told: UnboundedSender<Released>,
) -> anyhow::Result<()> {
    let mut party = Party {
        agent: Agent {
            subjects: SubjectSpace::default(),
            id: AgentId::new(name)?,
            finding: json!({ "summary": "Measured.", "risk_score": score, "evidence": ["Clause 1."] }),
        },
        asked: HashMap::new(),
        told,
    };
    let mut inbox = client.subscribe(subjects::inbox(name)?).await?;
    client.flush().await?;
    let client = client.clone();
    tokio::spawn(async move {
        while let Some(message) = inbox.next().await {
            if let Some((subject, answer)) = party.hear(&message.payload) {
                let sent = client.publish(subject, answer.to_string().into()).await;
                if sent.is_err() {
                    return;
                }
            }
        }
    });
    Ok(())
}
