//! Opens cases and waits for their decisions, so that always as many as wanted are under way.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::{Client, Message};
use concord_wire::subject::{Service, Subject, SubjectSpace};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::{agents, subjects};

/// Who opens the cases.
const OPENER: &str = "bench";
/// A case that takes longer than this ends the measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a message says about a case.
pub(super) enum News {
    /// It was decided.
    Decided(String),
    /// It was refused, for this reason.
    Refused(String),
    /// Nothing of importance here.
    Other,
}

/// The messages in which a system says what became of cases.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// A system that decides cases.
pub(super) trait Decider {
    /// Opens a case.
    async fn open(&self, client: &Client, case: &str) -> anyhow::Result<()>;
    /// Everything from which decisions are learned.
    async fn messages(&self, client: &Client) -> anyhow::Result<Messages>;
    /// What a message says.
    fn news(&self, message: &Message) -> News;
}

/// A connection with room for what arrives while cases are opened.
pub(super) async fn connect(url: &str) -> anyhow::Result<Client> {
    let options = async_nats::ConnectOptions::new().subscription_capacity(1 << 20);
    Ok(options.connect(url).await?)
}

/// Cases to decide.
pub(super) struct Batch<'a> {
    /// Their names begin with this; no two batches on one installation have the same.
    pub(super) name: &'a str,
    /// Their number.
    pub(super) total: usize,
    /// The number that is under way at once.
    pub(super) concurrency: usize,
}

/// Opens cases and waits until all are decided; the latency of each, in the order of the decisions. `decided` is called
/// after each.
pub(super) async fn drive(
    client: &Client,
    decider: &impl Decider,
    batch: Batch<'_>,
    mut decided: impl FnMut(),
) -> anyhow::Result<Vec<Duration>> {
    let Batch {
        name,
        total,
        concurrency,
    } = batch;
    let mut messages = decider.messages(client).await?;
    client.flush().await?;
    let mut begun: HashMap<String, Instant> = HashMap::new();
    let mut latencies = Vec::with_capacity(total);
    let mut next = 0;
    while latencies.len() < total {
        while next < total && begun.len() < concurrency {
            let case = format!("{name}-{next}");
            decider.open(client, &case).await?;
            begun.insert(case, Instant::now());
            next += 1;
        }
        let message = tokio::time::timeout(PATIENCE, messages.next()).await;
        let message = message.with_context(|| {
            format!(
                "no case was decided in {} s; {} are under way, after {} of {total}",
                PATIENCE.as_secs(),
                begun.len(),
                latencies.len()
            )
        })?;
        match decider.news(&message.context("the connection to the broker has ended")?) {
            News::Decided(case) => {
                if let Some(started) = begun.remove(&case) {
                    latencies.push(started.elapsed());
                    decided();
                }
            }
            News::Refused(why) => bail!("a case was refused: {why}"),
            News::Other => {}
        }
    }
    Ok(latencies)
}

/// Opens a case of these participants.
pub(super) async fn open(
    client: &Client,
    case: &str,
    policy: &Value,
    participants: &[String],
) -> anyhow::Result<()> {
    let request = json!({
        "message_id": format!("open-{case}"), "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": OPENER,
        "to_agent": "coordinator", "message_type": "request", "case_id": case,
        "payload": {"action": "open_case", "parameters": {
            "case_id": case, "policy": policy, "participants": participants,
            "task": {"type": "bench", "title": "Measured", "input": {}}
        }}
    });
    let subject = subjects::message(case, OPENER, "coordinator", "request")?;
    Ok(client.publish(subject, request.to_string().into()).await?)
}

/// Concord, with the measured agents as participants of each case.
pub(super) struct Concord {
    /// Whether the parties of a debate hear each other's answers.
    pub(super) hear_answers: bool,
}

impl Decider for Concord {
    async fn open(&self, client: &Client, case: &str) -> anyhow::Result<()> {
        let policy = json!({"preset": "contract-review", "rounds_max": 1, "hear_answers": self.hear_answers});
        open(client, case, &policy, &agents::names()).await
    }

    async fn messages(&self, client: &Client) -> anyhow::Result<Messages> {
        let decided = client.subscribe(subjects::inbox("_all")?).await?;
        let own = client.subscribe(subjects::inbox(OPENER)?).await?;
        Ok(Box::pin(stream::select(decided, own)))
    }

    fn news(&self, message: &Message) -> News {
        let Ok(Subject::Message {
            case: Some(case),
            from,
            to,
            kind,
            ..
        }) = SubjectSpace::default().parse(&message.subject)
        else {
            return News::Other;
        };
        // The facilitator tells everyone too, of each debate.
        if from != Service::Coordinator.agent_id() {
            return News::Other;
        }
        match (to.as_str(), kind.as_str()) {
            ("_all", _) => News::Decided(case.to_string()),
            (_, "error") => {
                let error: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
                let why = error.pointer("/payload/error_message");
                News::Refused(why.and_then(Value::as_str).unwrap_or("?").to_owned())
            }
            _ => News::Other,
        }
    }
}
