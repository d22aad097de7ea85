//! One agent floods, others do not: how long each of their messages takes to be answered, alone, while as much is sent to the
//! broker that no service is given, and during the flood. The second shows what of the third is the broker's and the machine's.
//!
//! The flooder sends what quiet agents send, as fast as it can. The services have the limits that they have by default.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use concord_wire::ErrorCode;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use tokio::time::Instant;

use super::attacks::{self, AttackReport};
use super::installation;
use super::measurements::Options;
use super::quiet::{AnswerTimes, INTERVAL, QUIET, message, quiet_agents, stored};
use super::subjects;

/// Messages that the flooder sends before the broker has stored the first of them. One that does not wait for the broker at all
/// has it refuse everybody's messages, which is for the broker to prevent.
const FLOOD_IN_FLIGHT: usize = 256;
/// The agent that floods.
pub(super) const FLOODER: &str = "flooder";
/// A stream that nobody reads, and its subject.
const UNREAD: (&str, &str) = ("UNREAD", "unread");

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
    let alone = AnswerTimes::of_answers(&quiet_agents(url, "alone", options.flood_messages).await?);
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
    let (messages, during) = (each.len(), AnswerTimes::of_answers(&each));
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
    let answers = AnswerTimes::of_answers(&quiet_agents(url, "unread", count).await?);
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
