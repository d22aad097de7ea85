//! Whole cases: five agents, two conflicts, one round of discussion, a vote each; every service and agent its own process.

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use async_nats::Client;
use concord_events::topology::StreamKind;
use concord_installation::{Installation, SERVICES};
use serde::Serialize;
use tempfile::TempDir;

use super::agents::{AgentKind, AgentProgram, Agents, Transport};
use super::driver::{self, Batch, Concord, drive};
use super::installation;
use super::measurements::Options;
use super::meter::{AGENTS, Meter, Usage};
use super::numbers::{percentile_ms, round};
use super::subjects;

/// The cases that warm caches and connections before a measurement, and are not counted.
const WARMING: usize = 40;

/// Counters of the services: appends that lost the lock, and reads of aggregates by steps.
const CONFLICTS: &str = "concord_step_conflicts_total";
const RELOADS: &str = "concord_step_reloads_total";

/// The measurement of whole cases.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CasesReport {
    /// Processes of each service.
    pub(super) replicas: usize,
    /// What the agents are written in.
    pub(super) agents: AgentKind,
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// Whether the parties of a debate hear each other's answers.
    pub(super) hear_answers: bool,
    /// The number of decided cases.
    pub(super) cases: usize,
    /// From request to decision, 50th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    /// The same, 99th percentile.
    pub(super) p99_ms: f64,
    /// Messages and events stored for one case.
    pub(super) stored_per_case: f64,
    /// What they take in the streams, in bytes.
    pub(super) stored_bytes_per_case: f64,
    /// Appends for one case that lost the lock to another process.
    pub(super) conflicts_per_case: f64,
    /// Reads of aggregates from the broker by steps, for one case.
    pub(super) reloads_per_case: f64,
    /// Rate, processor time, and messages of the broker.
    #[serde(flatten)]
    pub(super) usage: Usage,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
}

/// The cases of one measurement.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Processes of each service.
    pub(super) replicas: usize,
    /// The program of the agents.
    pub(super) agents: AgentProgram,
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// All cases.
    pub(super) total: usize,
    /// Whether the parties of a debate hear each other's answers.
    pub(super) hear_answers: bool,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, concurrency, replicas) = (self.total, self.concurrency, self.replicas);
        write!(
            f,
            "{total} cases, {concurrency} at once, processes of each service: {replicas}"
        )
    }
}

/// Runs cases on an installation of their own.
pub(super) async fn measure(options: &Options, load: &Load) -> anyhow::Result<CasesReport> {
    let running = Running::start(options, load).await?;
    let (counts, before) = (running.counts().await?, running.meter().await?);
    let mut latencies = running.drive("case", load.total, || {}).await?;
    let (after, counted) = (running.meter().await?, running.counts().await?);
    let usage = before.until(&after, load.total);
    usage.warn_if_disturbed(&load.to_string());
    let limited = running.stop(&load.to_string()).await?;
    latencies.sort();
    let each =
        |before: u64, after: u64| round(after.saturating_sub(before) as f64 / load.total as f64);
    Ok(CasesReport {
        replicas: load.replicas,
        agents: load.agents.kind(),
        concurrency: load.concurrency,
        hear_answers: load.hear_answers,
        cases: latencies.len(),
        p50_ms: percentile_ms(&latencies, 0.50),
        p99_ms: percentile_ms(&latencies, 0.99),
        stored_per_case: each(counts.stored, counted.stored),
        stored_bytes_per_case: each(counts.stored_bytes, counted.stored_bytes),
        conflicts_per_case: each(counts.conflicts, counted.conflicts),
        reloads_per_case: each(counts.reloads, counted.reloads),
        usage,
        limited,
    })
}

/// An installation with its agents, warm.
pub(super) struct Running {
    /// Its processes.
    pub(super) installation: Installation,
    agents: Agents,
    client: Client,
    decider: Concord,
    concurrency: usize,
    /// Last: what is stored is removed when all processes have ended.
    _folder: TempDir,
}

/// What an installation has stored and counted until now.
struct Counts {
    stored: u64,
    stored_bytes: u64,
    conflicts: u64,
    reloads: u64,
}

impl Running {
    /// Starts everything, and runs the first cases.
    pub(super) async fn start(options: &Options, load: &Load) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(&options.directory)?;
        let mut plan = installation::unlimited(options, &folder.path().display().to_string());
        plan.replicas = SERVICES.map(|service| (service, load.replicas)).into();
        let installation = installation::start(options, plan).await?;
        installation::free_openers(&installation).await?;
        let url = installation.server_url();
        let agents = Agents::start(
            &load.agents,
            Transport::Plain,
            url,
            installation.directory(),
        )
        .await?;
        let client = driver::connect(url).await?;
        let running = Self {
            installation,
            agents,
            client,
            decider: Concord {
                hear_answers: load.hear_answers,
            },
            concurrency: load.concurrency,
            _folder: folder,
        };
        running
            .drive("warm", WARMING.min(load.total), || {})
            .await?;
        Ok(running)
    }

    /// Runs cases whose names begin with `name`, and calls `decided` after each; the latency of each.
    pub(super) async fn drive(
        &self,
        name: &str,
        total: usize,
        decided: impl FnMut(),
    ) -> anyhow::Result<Vec<Duration>> {
        let batch = Batch {
            name,
            total,
            concurrency: self.concurrency,
        };
        let result = drive(&self.client, &self.decider, batch, decided).await;
        result.with_context(|| {
            format!(
                "the cases were not all decided; the ends of the logs:\n{}",
                self.installation.log_tails()
            )
        })
    }

    /// What all processes have used until now.
    pub(super) async fn meter(&self) -> anyhow::Result<Meter> {
        let broker = self
            .installation
            .broker()
            .context("the installation has no broker")?;
        let mut processes = installation::processes(&self.installation)?;
        processes.extend(self.agents.pids().map(|pid| (AGENTS.to_owned(), pid)));
        Meter::read(&processes, broker).await
    }

    async fn counts(&self) -> anyhow::Result<Counts> {
        let context = async_nats::jetstream::new(self.client.clone());
        let (mut stored, mut stored_bytes) = (0, 0);
        for kind in [StreamKind::Messages, StreamKind::Events] {
            let stream = subjects::stream(&context, kind).await?;
            let state = stream.get_info().await?.state;
            stored += state.last_sequence;
            stored_bytes += state.bytes;
        }
        Ok(Counts {
            stored,
            stored_bytes,
            conflicts: self.installation.counter(CONFLICTS).await?,
            reloads: self.installation.counter(RELOADS).await?,
        })
    }

    /// Stops everything; how often a limit has intervened.
    pub(super) async fn stop(self, measurement: &str) -> anyhow::Result<u64> {
        drop(self.agents);
        installation::stop(self.installation, measurement).await
    }
}
