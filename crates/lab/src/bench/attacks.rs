//! What one agent can cause with few messages: cases with large tasks for many participants, messages as large as the broker takes,
//! compressed bodies of very many empty parts, large payloads in the object store; and a flood of small messages. How long others
//! wait meanwhile, how much memory the services take, and how many errors tell the agent.
//!
//! Each attack has an installation of its own, so that the most memory that a service has had is that of the attack. The services
//! have the limits that they have by default.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use async_nats::{HeaderMap, jetstream};
use bytes::Bytes;
use concord_wire::{Encoding, ErrorCode, header};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::flood::{FLOODER, make_unread};
use super::installation;
use super::measurements::Options;
use super::process::peak_mb;
use super::quiet::{AnswerTimes, message, quiet_agents, stored};
use super::subjects;

/// Messages of each quiet agent, ten a second: few, so that the attack lasts for a good part of the time.
const QUIET_MESSAGES: usize = 50;
/// The others' p99 is to be at most so many times its value alone, and so many milliseconds.
const P99_RATIO_MAX: f64 = 3.0;
const P99_MS_MAX: f64 = 100.0;
/// The most megabytes that a service is to have resident.
const PEAK_MB_MAX: f64 = 256.0;
/// Messages of the flood a second, and how long it lasts.
const FLOOD_RATE: u64 = 30_000;
const FLOOD_LASTS: Duration = Duration::from_secs(5);
/// Messages that are sent before the broker has stored the first of them.
const IN_FLIGHT: usize = 256;

/// What is done.
#[derive(Debug, Clone, Copy)]
enum Attack {
    Cases,
    LargeMessages,
    EmptyParts,
    LargePayloads,
    Flood,
}

impl Attack {
    const ALL: [Self; 5] = [
        Self::Cases,
        Self::LargeMessages,
        Self::EmptyParts,
        Self::LargePayloads,
        Self::Flood,
    ];

    fn what(self) -> &'static str {
        match self {
            Self::Cases => "20 cases, tasks of 600 KB, 64 participants",
            Self::LargeMessages => "60 messages of 7.9 MB",
            Self::EmptyParts => "60 bodies of 60,000 empty zstd frames",
            Self::LargePayloads => "60 references to a payload of 7.9 MB",
            Self::Flood => "30,000 messages a second, for 5 s",
        }
    }

    /// The number of messages.
    fn count(self) -> u64 {
        match self {
            Self::Cases => 20,
            Self::LargeMessages | Self::EmptyParts | Self::LargePayloads => 60,
            Self::Flood => FLOOD_RATE * FLOOD_LASTS.as_secs(),
        }
    }
}

/// What others notice of an attack, and what it costs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct AttackReport {
    /// The attack in words.
    pub(super) attack: &'static str,
    /// Its messages.
    pub(super) messages: u64,
    /// How long it took to send them, in seconds.
    pub(super) sent_s: f64,
    /// The others' answers before it.
    pub(super) alone: AnswerTimes,
    /// The others' answers while the same is sent to a stream that nobody reads: what of it is the broker's and the machine's.
    pub(super) unread: AnswerTimes,
    /// The others' answers from its first message on.
    pub(super) during: AnswerTimes,
    /// The third over the first, at the 99th percentile.
    pub(super) p99_ratio: f64,
    /// The most memory that each service has had, in megabytes.
    pub(super) peak_mb: BTreeMap<String, f64>,
    /// The errors that told the agent until the others had their last answer.
    pub(super) errors: u64,
    /// The messages that these errors were about.
    pub(super) told: u64,
    /// Whether the others waited no longer than they are to wait.
    pub(super) p99_met: bool,
    /// Whether no service has had more memory than it is to have.
    pub(super) memory_met: bool,
}

/// Measures all attacks, one after the other; `progress` is told which.
pub(super) async fn measure(
    options: &Options,
    mut progress: impl FnMut(&str),
) -> anyhow::Result<Vec<AttackReport>> {
    let mut reports = Vec::new();
    for attack in Attack::ALL {
        progress(attack.what());
        reports.push(one(options, attack).await?);
    }
    Ok(reports)
}

async fn one(options: &Options, attack: Attack) -> anyhow::Result<AttackReport> {
    let plan = installation::limited(options, &format!("attack-{attack:?}"));
    let installation = installation::start(options, plan).await?;
    installation::free_openers(&installation).await?;
    let url = installation.server_url();
    quiet_agents(url, "warm", 10).await?;
    let alone = AnswerTimes::of_answers(&quiet_agents(url, "alone", QUIET_MESSAGES).await?);
    let told = Told::listen(url).await?;
    let client = async_nats::connect(url).await?;
    let messages = messages(&client, attack).await?;
    let unread = beside_unread(url, &client, attack, &messages).await?;
    let subject = subjects::message_outside_cases(FLOODER, "coordinator", "request")?;
    let sending = tokio::spawn(send(client, subject, attack, messages));
    let during = AnswerTimes::of_answers(&quiet_agents(url, "during", QUIET_MESSAGES).await?);
    let sent_s = sending.await??;
    let peak_mb = installation::memory(&installation, peak_mb);
    let (errors, told) = told.end();
    installation.stop().await;
    let p99_ratio = during.p99_ms / alone.p99_ms;
    Ok(AttackReport {
        attack: attack.what(),
        messages: attack.count(),
        sent_s,
        alone,
        unread,
        during,
        p99_ratio,
        errors,
        told,
        p99_met: p99_ratio <= P99_RATIO_MAX && during.p99_ms <= P99_MS_MAX,
        memory_met: peak_mb.values().all(|mb| *mb <= PEAK_MB_MAX),
        peak_mb,
    })
}

/// The others' answers while the messages of an attack are sent to a stream that nobody reads.
async fn beside_unread(
    url: &str,
    client: &async_nats::Client,
    attack: Attack,
    messages: &[(HeaderMap, Bytes)],
) -> anyhow::Result<AnswerTimes> {
    let context = jetstream::new(client.clone());
    let (name, subject) = make_unread(&context).await?;
    let sending = send(client.clone(), subject.into(), attack, messages.to_vec());
    let sending = tokio::spawn(sending);
    let answers = AnswerTimes::of_answers(&quiet_agents(url, "unread", QUIET_MESSAGES).await?);
    sending.await??;
    context.delete_stream(name).await?;
    Ok(answers)
}

/// The headers and the bodies of the messages of an attack, made before it begins; those of the flood are made while it lasts.
async fn messages(
    client: &async_nats::Client,
    attack: Attack,
) -> anyhow::Result<Vec<(HeaderMap, Bytes)>> {
    let mut headers = HeaderMap::new();
    let mut parameters = json!({});
    match attack {
        Attack::Flood => return Ok(Vec::new()),
        Attack::EmptyParts => {
            headers.insert(header::CONTENT_ENCODING, Encoding::Zstd.as_str());
            let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0].repeat(60_000);
            let body = Bytes::from(empty);
            return Ok((0..attack.count())
                .map(|_| (headers.clone(), body.clone()))
                .collect());
        }
        Attack::Cases => {
            let crowd: Vec<String> = (0..64).map(|number| format!("a-{number}")).collect();
            let task = json!({ "type": "bench", "input": "x".repeat(600_000) });
            parameters = json!({ "policy": {}, "participants": crowd, "task": task });
        }
        Attack::LargeMessages => parameters = json!({ "text": "x".repeat(7_900_000) }),
        Attack::LargePayloads => {}
    }
    let mut payload = json!({ "action": "open_case", "parameters": parameters });
    if matches!(attack, Attack::LargePayloads) {
        payload = large_payload(client).await?;
    }
    let each = (0..attack.count()).map(|number| {
        let (_, _, body) = message(FLOODER, &number.to_string())?;
        let mut body: Value = serde_json::from_slice(&body)?;
        *body.get_mut("payload").context("a payload")? = payload.clone();
        Ok((headers.clone(), Bytes::from(body.to_string())))
    });
    each.collect()
}

/// Stores a large payload, as any agent can that may use the object store; the reference to it.
async fn large_payload(client: &async_nats::Client) -> anyhow::Result<Value> {
    let payload =
        json!({ "action": "open_case", "parameters": { "text": vec![0; 3_950_000 - 32] } })
            .to_string();
    let bucket = concord_events::topology::Layout::default().payload_bucket();
    let reference = concord_encoding::PayloadReference::new(&bucket, FLOODER, payload.as_bytes());
    let store = jetstream::new(client.clone())
        .get_object_store(&bucket)
        .await?;
    store
        .put(reference.object.as_str(), &mut payload.as_bytes())
        .await?;
    Ok(serde_json::from_str(reference.payload()?.get())?)
}

/// Sends the messages of an attack on `subject` as fast as the broker stores them, the flood at its rate; how long it took, in seconds.
async fn send(
    client: async_nats::Client,
    subject: String,
    attack: Attack,
    messages: Vec<(HeaderMap, Bytes)>,
) -> anyhow::Result<f64> {
    let context = jetstream::new(client);
    let began = Instant::now();
    for (headers, body) in messages {
        let sent = context.publish_with_headers(subject.clone(), headers, body);
        sent.await?.await?;
    }
    if matches!(attack, Attack::Flood) {
        let mut under_way = FuturesUnordered::new();
        for number in 0..attack.count() {
            let due = began
                + Duration::from_secs(1) * u32::try_from(number)? / u32::try_from(FLOOD_RATE)?;
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
            }
            let (_, _, body) = message(FLOODER, &number.to_string())?;
            under_way.push(stored(context.clone(), subject.clone(), body.into()));
            if under_way.len() >= IN_FLIGHT {
                under_way.next().await.transpose()?;
            }
        }
        while let Some(sent) = under_way.next().await {
            sent?;
        }
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Counts the errors that tell the agent of what was refused.
struct Told {
    errors: Arc<AtomicU64>,
    messages: Arc<AtomicU64>,
    counting: JoinHandle<()>,
}

impl Told {
    async fn listen(url: &str) -> anyhow::Result<Self> {
        let options = async_nats::ConnectOptions::new().subscription_capacity(1 << 20);
        let client = options.connect(url).await?;
        let mut answers = client.subscribe(subjects::inbox(FLOODER)?).await?;
        client.flush().await?;
        let (errors, messages) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (counted, about) = (Arc::clone(&errors), Arc::clone(&messages));
        let counting = tokio::spawn(async move {
            while let Some(answer) = answers.next().await {
                let Ok(answer) = serde_json::from_slice::<Value>(&answer.payload) else {
                    continue;
                };
                let code = answer
                    .pointer("/payload/error_code")
                    .and_then(Value::as_str);
                if code
                    .is_some_and(|code| ErrorCode::ALL.iter().any(|known| known.as_str() == code))
                {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let refused = answer.pointer("/payload/details/refused");
                    let refused = refused.and_then(Value::as_u64).unwrap_or(1);
                    about.fetch_add(refused, Ordering::Relaxed);
                }
            }
            drop(client);
        });
        Ok(Self {
            errors,
            messages,
            counting,
        })
    }

    fn end(self) -> (u64, u64) {
        self.counting.abort();
        let Self {
            errors, messages, ..
        } = &self;
        (
            errors.load(Ordering::Relaxed),
            messages.load(Ordering::Relaxed),
        )
    }
}

/// Prints what was measured, with the aims.
pub(super) fn print(reports: &[AttackReport]) {
    let met = |is_met: bool| if is_met { "met" } else { "not met" };
    for report in reports {
        let AnswerTimes { p50_ms, p99_ms, .. } = report.during;
        anstream::println!(
            "\n{}; sent in {:.1} s\n    others: {:.1} ms p50, {:.1} ms p99 alone; {:.1} ms p99 beside a stream that nobody reads; {p50_ms:.1} ms p50, \
             {p99_ms:.1} ms p99 meanwhile, {:.1} times (aim: {P99_RATIO_MAX} times and {P99_MS_MAX} ms at most: {})",
            report.attack,
            report.sent_s,
            report.alone.p50_ms,
            report.alone.p99_ms,
            report.unread.p99_ms,
            report.p99_ratio,
            met(report.p99_met)
        );
        let memory: Vec<String> = report
            .peak_mb
            .iter()
            .map(|(service, mb)| format!("{service} {mb:.0}"))
            .collect();
        anstream::println!(
            "    most memory in MB: {} (aim: {PEAK_MB_MAX} at most: {})\n    {} errors told it of {} of {} messages",
            memory.join(", "),
            met(report.memory_met),
            report.errors,
            report.told,
            report.messages
        );
    }
}
