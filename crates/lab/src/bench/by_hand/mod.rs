//! The same agents and the same conflicts without Concord: an orchestrator as an engineer writes it in an afternoon.

use anyhow::Context;
use async_nats::{Client, Message};
use concord_installation::{MONITORING, NatsServer, Program};
use concord_wire::subject::SubjectSpace;
use serde::Serialize;
use serde_json::json;

use super::agents::{self, AgentProgram, Agents, Transport};
use super::driver::{self, Batch, Decider, Messages, News, drive};
use super::measurements::Options;
use super::meter::{AGENTS, BROKER, DRIVER, Meter, Processes, Usage};
use super::numbers::percentile_ms;
use super::ready_process;
use crate::python::Python;

/// The program of the orchestrator.
const SCRIPT: &str = include_str!("orchestrator.py");
/// Its name among the processes.
const ORCHESTRATOR: &str = "orchestrator";
/// Where it listens for cases and says its decisions; also in its program.
const OPEN: &str = "by_hand.open";
const DECIDED: &str = "by_hand.decided";
const WARMING: usize = 40;

/// The measurement of the orchestrator.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ByHandReport {
    /// Whether its messages are stored.
    pub(super) transport: Transport,
    /// Cases under way at once.
    pub(super) concurrency: usize,
    /// The number of decided cases.
    pub(super) cases: usize,
    /// From request to decision, 50th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    /// The same, 99th percentile.
    pub(super) p99_ms: f64,
    /// Rate, processor time, and messages of the broker.
    #[serde(flatten)]
    pub(super) usage: Usage,
}

/// Runs `total` cases, at most `concurrency` at once, on a broker of their own.
pub(super) async fn measure(
    options: &Options,
    (python, transport): (&Python, Transport),
    concurrency: usize,
    total: usize,
) -> anyhow::Result<ByHandReport> {
    let folder = format!("by-hand-{transport:?}-{concurrency}");
    let folder = options.directory.join(folder);
    let broker = NatsServer::spawn_with(&NatsServer::find()?, &folder, None, MONITORING).await?;
    let program = AgentProgram::Python(python.clone());
    // It creates the stream in which the agents' messages are.
    let command = command(python, transport, &broker.url(), &folder)?;
    let orchestrator = ready_process::start(command)?;
    ready_process::ready(&orchestrator).await?;
    let agents = Agents::start(&program, transport, &broker.url(), &folder).await?;
    let client = driver::connect(&broker.url()).await?;
    let mut processes: Processes = agents.pids().map(|pid| (AGENTS.to_owned(), pid)).collect();
    let pid = orchestrator.pid().context("the orchestrator has ended")?;
    processes.push((ORCHESTRATOR.to_owned(), pid));
    let pid = broker.pid().context("the broker has ended")?;
    processes.push((BROKER.to_owned(), pid));
    processes.push((DRIVER.to_owned(), std::process::id()));
    let batch = |name, total| Batch {
        name,
        total,
        concurrency,
    };
    drive(&client, &ByHand, batch("warm", WARMING.min(total)), || {}).await?;
    let before = Meter::read(&processes, &broker).await?;
    let driven = drive(&client, &ByHand, batch("case", total), || {}).await;
    let mut latencies =
        driven.with_context(|| format!("the orchestrator's log:\n{}", orchestrator.tail()))?;
    let usage = before.until(&Meter::read(&processes, &broker).await?, total);
    usage.warn_if_disturbed(&format!("by hand ({transport:?}), {concurrency} at once"));
    drop((orchestrator, agents));
    broker.stop().await;
    latencies.sort();
    Ok(ByHandReport {
        transport,
        concurrency,
        cases: latencies.len(),
        p50_ms: percentile_ms(&latencies, 0.50),
        p99_ms: percentile_ms(&latencies, 0.99),
        usage,
    })
}

fn command(
    python: &Python,
    transport: Transport,
    url: &str,
    folder: &std::path::Path,
) -> anyhow::Result<Program> {
    let script = folder.join("orchestrator.py");
    std::fs::write(&script, SCRIPT).context("writing the orchestrator's program")?;
    let prefix = SubjectSpace::default().prefix().to_owned();
    let mut arguments = vec![script.display().to_string()];
    arguments.extend(["--server".to_owned(), url.to_owned()]);
    arguments.extend(["--prefix".to_owned(), prefix, "--agents".to_owned()]);
    arguments.extend(agents::names());
    arguments.extend(transport.arguments());
    Ok(Program {
        name: ORCHESTRATOR.to_owned(),
        path: python.program.clone(),
        arguments,
        environment: python.environment(),
        log: folder.join("orchestrator.log"),
        orphaned: "KILL",
    })
}

struct ByHand;

impl Decider for ByHand {
    async fn open(&self, client: &Client, case: &str) -> anyhow::Result<()> {
        let task = json!({"type": "bench", "title": "Measured", "input": {}});
        let subject = format!("{OPEN}.{case}");
        Ok(client.publish(subject, task.to_string().into()).await?)
    }

    async fn messages(&self, client: &Client) -> anyhow::Result<Messages> {
        Ok(Box::pin(client.subscribe(format!("{DECIDED}.*")).await?))
    }

    fn news(&self, message: &Message) -> News {
        let case = message.subject.strip_prefix(DECIDED);
        let case = case.and_then(|rest| rest.strip_prefix('.'));
        case.map_or(News::Other, |case| News::Decided(case.to_owned()))
    }
}
