//! Many cases on one installation: what grows with their number.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::agents::AgentKind;
use super::cases::{Load, Running};
use super::measurements::Options;
use super::meter::{BROKER, Usage};
use super::numbers::{percentile_ms, round, slope};
use super::process::resident_mb;
use super::{aims, installation};

/// Parts of the run that are compared.
const PARTS: usize = 10;

/// A run of many cases.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LongReport {
    /// Whether the programs were built without optimisation.
    pub(super) debug_build: bool,
    /// What the agents are written in.
    pub(super) agents: AgentKind,
    /// Processes of each service.
    pub(super) replicas: usize,
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// The number of decided cases.
    pub(super) cases: usize,
    /// Each tenth of the run, in order.
    pub(super) tenths: Vec<Tenth>,
    /// The growth of the broker's resident memory, by least squares over the tenths, in kilobytes a case.
    pub(super) broker_kb_per_case: f64,
    /// What is wanted of all this, and whether it is so.
    pub(super) aims: Vec<aims::Aim>,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
}

/// One tenth of the run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Tenth {
    /// Cases decided until its end, in all tenths.
    pub(super) cases: usize,
    /// From request to decision, 50th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    /// The same, 99th percentile.
    pub(super) p99_ms: f64,
    /// Rate, processor time, and messages of the broker.
    #[serde(flatten)]
    pub(super) usage: Usage,
    /// Resident memory at its end, in megabytes: the broker, and the largest process of each service.
    pub(super) resident_mb: BTreeMap<String, f64>,
}

/// Runs cases in ten parts; what is known so far is told on standard error.
pub(super) async fn measure(options: &Options, load: &Load) -> anyhow::Result<LongReport> {
    eprintln!("starting the installation");
    let running = Running::start(options, load).await?;
    let bar = bar(load.total)?;
    let mut tenths = Vec::new();
    let (mut decided, mut before) = (0, running.meter().await?);
    for part in 1..=PARTS {
        let cases = load.total * part / PARTS - decided;
        let name = format!("part-{part}");
        let mut latencies = running.drive(&name, cases, || bar.inc(1)).await?;
        latencies.sort();
        let after = running.meter().await?;
        decided += cases;
        let tenth = Tenth {
            cases: decided,
            p50_ms: percentile_ms(&latencies, 0.50),
            p99_ms: percentile_ms(&latencies, 0.99),
            usage: before.until(&after, cases),
            resident_mb: memory(&running)?,
        };
        before = after;
        bar.suspend(|| tell(&tenth, load.total));
        tenths.push(tenth);
    }
    bar.finish_and_clear();
    let limited = running.stop(&load.to_string()).await?;
    let broker: Vec<(f64, f64)> = tenths
        .iter()
        .filter_map(|tenth| Some((tenth.cases as f64, *tenth.resident_mb.get(BROKER)?)))
        .collect();
    let mut report = LongReport {
        debug_build: cfg!(debug_assertions),
        agents: load.agents.kind(),
        replicas: load.replicas,
        concurrency: load.concurrency,
        cases: decided,
        tenths,
        broker_kb_per_case: round(slope(&broker) * 1_024.0),
        aims: Vec::new(),
        limited,
    };
    report.aims = aims::of_long(&report);
    Ok(report)
}

fn memory(running: &Running) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut memory = installation::memory(&running.installation, resident_mb);
    let broker = running
        .installation
        .broker()
        .and_then(|broker| broker.pid());
    let broker = resident_mb(broker.context("the broker has ended")?)?;
    memory.insert(BROKER.to_owned(), round(broker));
    Ok(memory)
}

/// A bar on a terminal; nothing elsewhere, where the lines of the tenths say how far it is.
fn bar(cases: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let bar = ProgressBar::new(u64::try_from(cases)?);
    bar.set_style(ProgressStyle::with_template(
        "{spinner} {wide_bar} {pos}/{len} cases {per_sec} {eta}",
    )?);
    bar.enable_steady_tick(Duration::from_millis(120));
    Ok(bar)
}

fn tell(tenth: &Tenth, total: usize) {
    let Usage {
        per_second,
        cpu_ms_per_case,
        ..
    } = tenth.usage;
    let memory: Vec<String> = tenth
        .resident_mb
        .iter()
        .map(|(process, megabytes)| format!("{process} {megabytes:.0}"))
        .collect();
    eprintln!(
        "{} of {total} cases: {per_second:.0} a second, {cpu_ms_per_case:.2} ms of processor time a case; MB resident: {}",
        tenth.cases,
        memory.join(", ")
    );
}
