//! How soon everybody hears of an alert while 100,000 messages wait: from before it is sent until an agent has it that has a durable
//! inbox and handles nothing else, and until one has it for which nothing waits.
//!
//! The agents are those of the client library. The one that is busy has the backlog in its inbox, in the broker; what the library has
//! fetched of it stands before its handler.

use std::time::Duration;

use anyhow::{Context, ensure};
use async_nats::jetstream;
use concord_agent::payload::Alert;
use concord_agent::{Agent, MessageType};
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};

use super::deadlines::now_ms;
use super::measurements::Options;
use super::quiet::{AnswerTimes, stored};
use super::{installation, subjects};

/// Messages that wait for the busy agent.
const BACKLOG: usize = 100_000;
/// Messages that are published before the broker has stored the first of them.
const IN_FLIGHT: usize = 256;
/// The time in which an alert must be heard.
const PATIENCE: Duration = Duration::from_secs(60);
const ALERTER: &str = "macro";
const BUSY: &str = "busy";
const IDLE: &str = "idle";

/// Alerts ahead of a backlog.
#[derive(Debug, Clone, Serialize)]
pub(super) struct AlertsReport {
    /// Alerts, one after the other.
    pub(super) alerts: usize,
    /// Messages of normal priority that waited for the busy agent, all of them until the last alert was heard.
    pub(super) waiting: u64,
    /// Until the agent hears that is busy and has a backlog.
    pub(super) busy: AnswerTimes,
    /// Until the agent hears for which nothing waits.
    pub(super) idle: AnswerTimes,
}

/// An agent that hears alerts.
struct Listener {
    agent: Agent,
    heard: UnboundedReceiver<Instant>,
}

impl Listener {
    /// One that handles no `info_update` ever, with a durable inbox if it is the busy one.
    async fn connect(url: &str, name: &str) -> anyhow::Result<Self> {
        let (sender, heard) = unbounded_channel();
        let agent = Agent::builder(name)
            .on(MessageType::InfoUpdate, |_, _| std::future::pending())
            .on(MessageType::Alert, move |_, _| {
                let at = Instant::now();
                // Nobody listens any more when the measurement has ended.
                let _ = sender.send(at);
                async { Ok(()) }
            });
        let agent = match name {
            BUSY => agent.durable(),
            _ => agent,
        };
        let agent = agent.connect(url).await?;
        Ok(Self { agent, heard })
    }

    /// Milliseconds from `begin` until the next alert is heard.
    async fn hears(&mut self, begin: Instant) -> anyhow::Result<f64> {
        let heard = timeout(PATIENCE, self.heard.recv()).await;
        let at = heard.context("an alert was not heard")?;
        let at = at.context("the agent has ended")?;
        Ok(at.duration_since(begin).as_secs_f64() * 1_000.0)
    }
}

/// Lets a backlog wait, and alerts.
pub(super) async fn measure(options: &Options, alerts: usize) -> anyhow::Result<AlertsReport> {
    let plan = installation::unlimited(options, "alerts");
    let installation = installation::start(options, plan).await?;
    let url = installation.server_url();
    let client = async_nats::connect(url).await?;
    installation::register(&client, ALERTER, "alerter").await?;
    let mut busy = Listener::connect(url, BUSY).await?;
    let mut idle = Listener::connect(url, IDLE).await?;
    let context = jetstream::new(client);
    fill(&context).await?;
    let alerter = Agent::builder(ALERTER).connect(url).await?;
    let (mut to_busy, mut to_idle) = (Vec::new(), Vec::new());
    for number in 0..alerts {
        let alert = Alert {
            new_state: Some(json!(number)),
            ..Alert::of("rate_move")
        };
        let begin = Instant::now();
        alerter.alert(&alert, None).await?;
        to_busy.push(busy.hears(begin).await?);
        to_idle.push(idle.hears(begin).await?);
    }
    let waiting = waiting(&context).await?;
    ensure!(waiting > 0, "the backlog was handled");
    for agent in [busy.agent, idle.agent, alerter] {
        drop(agent);
    }
    installation.stop().await;
    Ok(AlertsReport {
        alerts,
        waiting,
        busy: AnswerTimes::of(to_busy),
        idle: AnswerTimes::of(to_idle),
    })
}

/// Stores the backlog.
async fn fill(context: &jetstream::Context) -> anyhow::Result<()> {
    let mut under_way = FuturesUnordered::new();
    for number in 0..BACKLOG {
        let (subject, note) = note(number)?;
        under_way.push(stored(context.clone(), subject, note.into()));
        if under_way.len() >= IN_FLIGHT {
            under_way.next().await.transpose()?;
        }
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

fn note(number: usize) -> anyhow::Result<(String, Vec<u8>)> {
    let kind = MessageType::InfoUpdate;
    let now = Timestamp::from_unix_millis(i64::try_from(now_ms()?)?);
    let note = json!({
        "message_id": format!("note-{number}"), "timestamp": now, "from_agent": "bench", "to_agent": BUSY,
        "message_type": kind, "payload": { "summary": "Nothing new." },
    });
    let subject = subjects::message_outside_cases("bench", BUSY, kind.as_str())?;
    Ok((subject, serde_json::to_vec(&note)?))
}

/// How much waits for the busy agent, in the broker or before its handler.
async fn waiting(context: &jetstream::Context) -> anyhow::Result<u64> {
    let stream = subjects::stream(context, StreamKind::Messages).await?;
    let info = stream.consumer_info(subjects::agent_inbox(BUSY)?).await?;
    Ok(info.num_pending + u64::try_from(info.num_ack_pending)?)
}
