//! Agents that send few messages, and how long each takes to be answered.
//!
//! Ten of them ask the coordinator, ten times a second each, for something that it does not do, and are told so: the whole way
//! from stream to stream, with a refusal stored and a dead letter kept.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, bail};
use async_nats::Client;
use async_nats::jetstream;
use bytes::Bytes;
use concord_wire::Timestamp;
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::deadlines::now_ms;
use super::subjects;

/// Agents that send few messages.
pub(super) const QUIET: usize = 10;
/// The time between two messages of one of them.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// The time in which the last answer must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The times of answers, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct AnswerTimes {
    /// The 50th percentile.
    pub(super) p50_ms: f64,
    /// The 99th percentile.
    pub(super) p99_ms: f64,
    /// The longest time.
    pub(super) max_ms: f64,
}

impl AnswerTimes {
    /// Those of answered messages.
    pub(super) fn of_answers<'a>(answers: impl IntoIterator<Item = &'a Answered>) -> Self {
        Self::of(answers.into_iter().map(Answered::ms).collect())
    }

    pub(super) fn of(mut each: Vec<f64>) -> Self {
        each.sort_by(f64::total_cmp);
        let at = |share: f64| {
            each.get(((each.len() as f64 * share) as usize).min(each.len().saturating_sub(1)))
        };
        let at = |share| at(share).copied().unwrap_or_default();
        Self {
            p50_ms: at(0.50),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}

/// A message that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    /// When it was sent.
    pub(super) sent: Instant,
    /// The time until the answer came.
    pub(super) took: Duration,
}

impl Answered {
    /// The time until the answer came, in milliseconds.
    pub(super) fn ms(&self) -> f64 {
        self.took.as_secs_f64() * 1_000.0
    }
}

/// Has each quiet agent send `count` messages, and waits until all are answered.
pub(super) async fn quiet_agents(
    url: &str,
    phase: &str,
    count: usize,
) -> anyhow::Result<Vec<Answered>> {
    let agents = (0..QUIET).map(async |number| {
        let client = async_nats::connect(url).await?;
        // Not all at the same instant.
        let begins = Instant::now() + INTERVAL * u32::try_from(number)? / u32::try_from(QUIET)?;
        quiet_agent(&client, &format!("quiet-{number}"), phase, count, begins).await
    });
    Ok(try_join_all(agents).await?.into_iter().flatten().collect())
}

async fn quiet_agent(
    client: &Client,
    name: &str,
    phase: &str,
    count: usize,
    begins: Instant,
) -> anyhow::Result<Vec<Answered>> {
    let mut answers = client.subscribe(subjects::inbox(name)?).await?;
    client.flush().await?;
    sleep_until(begins).await;
    let mut due = interval(INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (context, mut publishing) = (jetstream::new(client.clone()), FuturesUnordered::new());
    let (mut sent, mut answered) = (HashMap::new(), Vec::with_capacity(count));
    let mut number = 0;
    let given_up = begins + INTERVAL * u32::try_from(count)? + PATIENCE;
    while answered.len() < count {
        tokio::select! {
            _ = due.tick(), if number < count => {
                let (id, subject, message) = message(name, &format!("{phase}-{number}"))?;
                sent.insert(id, Instant::now());
                publishing.push(stored(context.clone(), subject, message.into()));
                number += 1;
            }
            // One that the broker has refused was sent again, as any agent does that wants an answer.
            Some(sent) = publishing.next(), if !publishing.is_empty() => sent?,
            answer = answers.next() => {
                let answer: Value = serde_json::from_slice(&answer.context("the subscription ended")?.payload)?;
                let asked = answer.get("correlation_id").and_then(Value::as_str).and_then(|id| sent.remove(id));
                answered.extend(asked.map(|sent| Answered { sent, took: sent.elapsed() }));
            }
            () = sleep_until(given_up) => bail!("{} of {count} messages of {name} were answered", answered.len()),
        }
    }
    Ok(answered)
}

/// A request for what the coordinator does not do: its id, its subject and its body.
pub(super) fn message(from: &str, number: &str) -> anyhow::Result<(String, String, Vec<u8>)> {
    let id = format!("{from}-{number}");
    let now = Timestamp::from_unix_millis(i64::try_from(now_ms()?)?);
    let body = json!({
        "message_id": id, "timestamp": now, "from_agent": from, "to_agent": "coordinator", "message_type": "request",
        "payload": { "action": "no_such_action", "parameters": {} },
    });
    Ok((
        id,
        subjects::message_outside_cases(from, "coordinator", "request")?,
        serde_json::to_vec(&body)?,
    ))
}

/// Publishes until the broker has stored it.
pub(super) async fn stored(
    context: jetstream::Context,
    subject: String,
    message: Bytes,
) -> anyhow::Result<()> {
    const TRIES: usize = 20;
    for tried in 1.. {
        let sent = async {
            context
                .publish(subject.clone(), message.clone())
                .await?
                .await
        };
        match sent.await {
            Ok(_) => break,
            Err(error) if tried == TRIES => return Err(error.into()),
            Err(_) => tokio::time::sleep(INTERVAL).await,
        }
    }
    Ok(())
}
