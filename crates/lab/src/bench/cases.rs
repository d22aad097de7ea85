//! Whole cases: five agents, two conflicts, one round of discussion, a vote each; every service its own process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_wire::subject::{Service, Subject, SubjectSpace};
use futures::StreamExt;
use serde::Serialize;
use serde_json::json;

use super::installation::{self, processor_times};
use super::measurements::{Options, round};
use super::{agents, subjects};

/// The measurement of whole cases at one concurrency.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CasesReport {
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// Whether the parties of a debate hear each other's answers.
    pub(super) hear_answers: bool,
    /// The number of decided cases.
    pub(super) cases: usize,
    /// Cases decided a second.
    pub(super) per_second: f64,
    /// From request to decision, 50th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    /// The same, 99th percentile.
    pub(super) p99_ms: f64,
    /// Messages and events stored for one case.
    pub(super) stored_per_case: f64,
    /// The processor time of a case in milliseconds, by process.
    pub(super) cpu_ms_per_case: BTreeMap<String, f64>,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
}

/// A single case that takes longer than this ends the measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// The cases of one measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// All cases.
    pub(super) total: usize,
    /// Whether the parties of a debate hear each other's answers.
    pub(super) hear_answers: bool,
}

/// Runs cases.
pub(super) async fn measure(options: &Options, load: Load) -> anyhow::Result<CasesReport> {
    let Load {
        concurrency,
        total,
        hear_answers,
    } = load;
    let heard = if hear_answers { "-heard" } else { "" };
    let plan = installation::unlimited(options, &format!("cases-{concurrency}{heard}"));
    let installation = installation::start(options, plan).await?;
    installation::free_openers(&installation).await?;
    let client = async_nats::ConnectOptions::new()
        .subscription_capacity(1 << 20)
        .connect(installation.server_url())
        .await?;
    let participants = start_agents(&client).await?;
    // The first cases warm caches and connections and are not counted.
    let warming = Load {
        concurrency: concurrency.min(20),
        total: 20.min(total),
        hear_answers,
    };
    drive(&client, &participants, "warm", warming).await?;
    let before = processor_times(&installation);
    let stored_before = stored(&client).await?;
    let started = Instant::now();
    let mut latencies = drive(&client, &participants, "case", load).await?;
    let elapsed = started.elapsed().as_secs_f64();
    let stored_per_case = (stored(&client).await? - stored_before) as f64 / total as f64;
    let after = processor_times(&installation);
    let cpu_ms_per_case = after
        .into_iter()
        .map(|(name, seconds)| {
            let used = seconds - before.get(&name).copied().unwrap_or(0.0);
            (name, round(used * 1_000.0 / total as f64))
        })
        .collect();
    let limited =
        installation::stop(installation, &format!("cases, {concurrency} at once")).await?;
    latencies.sort();
    Ok(CasesReport {
        concurrency,
        hear_answers,
        cases: latencies.len(),
        per_second: round(total as f64 / elapsed),
        p50_ms: percentile(&latencies, 0.50),
        p99_ms: percentile(&latencies, 0.99),
        stored_per_case: round(stored_per_case),
        cpu_ms_per_case,
        limited,
    })
}

async fn start_agents(client: &Client) -> anyhow::Result<Vec<String>> {
    let mut participants = Vec::new();
    for agent in agents::five() {
        participants.push(agent.id()?.to_string());
        agent.run(client.clone()).await?;
    }
    Ok(participants)
}

/// Opens cases so that as many as wanted are under way, until all are decided; the latency of each.
async fn drive(
    client: &Client,
    participants: &[String],
    name: &str,
    load: Load,
) -> anyhow::Result<Vec<Duration>> {
    let Load {
        concurrency, total, ..
    } = load;
    let mut decided = client.subscribe(subjects::inbox("_all")?).await?;
    client.flush().await?;
    let mut begun: BTreeMap<String, Instant> = BTreeMap::new();
    let mut latencies = Vec::with_capacity(total);
    let mut next = 0;
    while latencies.len() < total {
        while next < total && begun.len() < concurrency {
            let case = format!("{name}-{next}");
            open(client, participants, &case, load.hear_answers).await?;
            begun.insert(case, Instant::now());
            next += 1;
        }
        let message = tokio::time::timeout(PATIENCE, decided.next()).await;
        let Some(message) = message.context("a case was not decided in a minute")? else {
            bail!("no more messages")
        };
        // The facilitator tells everyone too, of each debate.
        let Ok(Subject::Message {
            case: Some(case),
            from,
            ..
        }) = SubjectSpace::default().parse(&message.subject)
        else {
            continue;
        };
        if from != Service::Coordinator.agent_id() {
            continue;
        }
        let case = case.to_string();
        if let Some(started) = begun.remove(&case) {
            latencies.push(started.elapsed());
        }
    }
    Ok(latencies)
}

async fn open(
    client: &Client,
    participants: &[String],
    case: &str,
    hear_answers: bool,
) -> anyhow::Result<()> {
    let policy =
        json!({"preset": "contract-review", "rounds_max": 1, "hear_answers": hear_answers});
    let request = json!({
        "message_id": format!("open-{case}"), "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": "bench",
        "to_agent": "coordinator", "message_type": "request", "case_id": case,
        "payload": {"action": "open_case", "parameters": {
            "case_id": case, "policy": policy,
            "participants": participants, "task": {"type": "bench", "title": "Measured", "input": {}}
        }}
    });
    let subject = subjects::message(case, "bench", "coordinator", "request")?;
    Ok(client.publish(subject, request.to_string().into()).await?)
}

async fn stored(client: &Client) -> anyhow::Result<u64> {
    let context = async_nats::jetstream::new(client.clone());
    let mut sum = 0;
    for kind in [StreamKind::Messages, StreamKind::Events] {
        sum += subjects::stream(&context, kind)
            .await?
            .get_info()
            .await?
            .state
            .last_sequence;
    }
    Ok(sum)
}

fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    let value = sorted
        .get(place.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default();
    round(value.as_secs_f64() * 1_000.0)
}
