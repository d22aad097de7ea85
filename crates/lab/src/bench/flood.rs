//! One agent floods, others do not: how long each of their messages takes to be answered, alone, while as much is sent to the
//! broker that no service is given, and during the flood. The second shows what of the third is the broker's and the machine's.
//!
//! Ten agents ask the coordinator, ten times a second each, for something that it does not do, and are told so: the whole way
//! from stream to stream, with a refusal stored and a dead letter kept. The flooder sends the same as fast as it can. The
//! services have the limits that they have by default.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use async_nats::Client;
use async_nats::jetstream::{self, stream};
use bytes::Bytes;
use concord_wire::{ErrorCode, Timestamp};
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::attacks::{self, AttackReport};
use super::deadlines::now_ms;
use super::installation;
use super::measurements::Options;
use super::subjects;

/// Agents that send few messages.
const QUIET: usize = 10;
/// The time between two messages of one of them.
const INTERVAL: Duration = Duration::from_millis(100);
/// The time in which the last answer must come.
const PATIENCE: Duration = Duration::from_secs(120);
/// Messages that the flooder sends before the broker has stored the first of them. One that does not wait for the broker at all
/// has it refuse everybody's messages, which is for the broker to prevent.
const FLOOD_IN_FLIGHT: usize = 256;
/// The agent that floods.
pub(super) const FLOODER: &str = "flooder";
/// A stream that nobody reads, and its subject.
const UNREAD: (&str, &str) = ("UNREAD", "unread");

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

/// Quiet agents beside a flood.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FloodReport {
    /// Agents that send ten messages a second each.
    pub(super) quiet_agents: usize,
    /// Their messages in each of the three measurements; every one was answered.
    pub(super) messages: usize,
    /// Their answers when nobody else sends anything.
    pub(super) alone: AnswerTimes,
    /// Their answers while another fills a stream that nobody reads: what the broker and the machine cost them.
    pub(super) unread: AnswerTimes,
    /// Their answers during the flood of the coordinator.
    pub(super) during: AnswerTimes,
    /// The last over the first, at the 50th percentile.
    pub(super) p50_ratio: f64,
    /// The same at the 99th.
    pub(super) p99_ratio: f64,
    /// The last over the second, at the 99th: what the services add to what the broker costs.
    pub(super) p99_ratio_to_unread: f64,
    /// Messages a second into the stream that nobody reads.
    pub(super) unread_per_second: f64,
    /// Messages of the flooder to the coordinator.
    pub(super) flooded: u64,
    /// The same, a second.
    pub(super) flooded_per_second: f64,
    /// The errors that told the flooder of its limit until the quiet agents had their last answer; one may be about many messages.
    pub(super) limited: u64,
    /// The same agents beside other attacks.
    pub(super) attacks: Vec<AttackReport>,
}

/// Measures the quiet agents alone, beside a stream that nobody reads, and beside a flood.
pub(super) async fn measure(options: &Options) -> anyhow::Result<FloodReport> {
    // The limits are what is measured, so they are the usual ones.
    let plan = installation::limited(options, "flood");
    let installation = installation::start(options, plan).await?;
    let url = installation.server_url();
    // The first messages warm caches and connections and are not counted.
    quiet_agents(url, "warm", 10).await?;
    let alone = AnswerTimes::of(quiet_agents(url, "alone", options.flood_messages).await?);
    let lasts = INTERVAL * u32::try_from(options.flood_messages)?;
    let (unread, unread_per_second) = beside_unread(url, lasts, options.flood_messages).await?;
    let flood = Flood::start(
        url,
        subjects::message_outside_cases(FLOODER, "coordinator", "request")?,
        lasts,
    )
    .await?;
    let each = quiet_agents(url, "during", options.flood_messages).await?;
    let (flooded, limited, seconds) = flood.end().await?;
    installation.stop().await;
    let (messages, during) = (each.len(), AnswerTimes::of(each));
    let attacks = attacks::measure(options, |what| eprintln!("measuring {what}")).await?;
    Ok(FloodReport {
        quiet_agents: QUIET,
        messages,
        alone,
        unread,
        during,
        p50_ratio: during.p50_ms / alone.p50_ms,
        p99_ratio: during.p99_ms / alone.p99_ms,
        p99_ratio_to_unread: during.p99_ms / unread.p99_ms,
        unread_per_second,
        flooded,
        flooded_per_second: flooded as f64 / seconds,
        limited,
        attacks,
    })
}

/// The quiet agents' answers while the same messages as fast fill a stream that nobody reads, and how many a second that was.
async fn beside_unread(
    url: &str,
    lasts: Duration,
    count: usize,
) -> anyhow::Result<(AnswerTimes, f64)> {
    let context = jetstream::new(async_nats::connect(url).await?);
    let (name, subject) = make_unread(&context).await?;
    let flood = Flood::start(url, subject.into(), lasts).await?;
    let answers = AnswerTimes::of(quiet_agents(url, "unread", count).await?);
    let (sent, _, seconds) = flood.end().await?;
    context.delete_stream(name).await?;
    Ok((answers, sent as f64 / seconds))
}

/// Makes the stream that nobody reads: its name, and the subject of its messages.
pub(super) async fn make_unread(
    context: &jetstream::Context,
) -> anyhow::Result<(&'static str, &'static str)> {
    let (name, subject) = UNREAD;
    let config = stream::Config {
        name: name.into(),
        subjects: vec![subject.into()],
        ..Default::default()
    };
    context.create_stream(config).await?;
    Ok(UNREAD)
}

/// The times of the answers to `count` messages of each quiet agent, in milliseconds.
pub(super) async fn quiet_agents(url: &str, phase: &str, count: usize) -> anyhow::Result<Vec<f64>> {
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
) -> anyhow::Result<Vec<f64>> {
    let mut answers = client.subscribe(subjects::inbox(name)?).await?;
    client.flush().await?;
    sleep_until(begins).await;
    let mut due = interval(INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (context, mut publishing) = (jetstream::new(client.clone()), FuturesUnordered::new());
    let (mut sent, mut took) = (HashMap::new(), Vec::with_capacity(count));
    let mut number = 0;
    let given_up = begins + INTERVAL * u32::try_from(count)? + PATIENCE;
    while took.len() < count {
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
                took.extend(asked.map(|at| at.elapsed().as_secs_f64() * 1_000.0));
            }
            () = sleep_until(given_up) => bail!("{} of {count} messages of {name} were answered", took.len()),
        }
    }
    Ok(took)
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

/// A flood under way.
struct Flood {
    limited: Arc<AtomicU64>,
    sending: tokio::task::JoinHandle<anyhow::Result<(u64, f64)>>,
    counting: tokio::task::JoinHandle<()>,
}

impl Flood {
    /// One on `subject` that goes on for so long as the quiet agents send.
    async fn start(url: &str, subject: String, lasts: Duration) -> anyhow::Result<Self> {
        let limited = Arc::new(AtomicU64::new(0));
        let listener = async_nats::ConnectOptions::new()
            .subscription_capacity(1 << 20)
            .connect(url)
            .await?;
        let mut answers = listener.subscribe(subjects::inbox(FLOODER)?).await?;
        listener.flush().await?;
        let counted = Arc::clone(&limited);
        let counting = tokio::spawn(async move {
            let code = ErrorCode::CapacityExceeded.as_str();
            while let Some(answer) = answers.next().await {
                let is_limit =
                    std::str::from_utf8(&answer.payload).is_ok_and(|text| text.contains(code));
                counted.fetch_add(u64::from(is_limit), Ordering::Relaxed);
            }
        });
        let client = async_nats::connect(url).await?;
        let sending = tokio::spawn(async move {
            let (context, mut under_way) = (jetstream::new(client), FuturesUnordered::new());
            let (mut number, began) = (0, Instant::now());
            while began.elapsed() < lasts {
                let (_, _, message) = message(FLOODER, &number.to_string())?;
                under_way.push(stored(context.clone(), subject.clone(), message.into()));
                number += 1;
                if under_way.len() >= FLOOD_IN_FLIGHT {
                    under_way.next().await.transpose()?;
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            while let Some(sent) = under_way.next().await {
                sent?;
            }
            Ok((number, seconds))
        });
        Ok(Self {
            limited,
            sending,
            counting,
        })
    }

    /// The number of messages, the number of errors about the limit, and the seconds that the flood took.
    async fn end(self) -> anyhow::Result<(u64, u64, f64)> {
        let (sent, seconds) = self.sending.await??;
        self.counting.abort();
        Ok((sent, self.limited.load(Ordering::Relaxed), seconds))
    }
}
