//! `concord-lab bench --tasks`: tasks by each strategy over many agents, beside the raw broker in the same run, and how long it takes
//! to find who can do something.
//!
//! The agents answer at once and share one connection of this process, so their processor time is that of the driver. What a number
//! is worth on a machine that does other things is the processor time; the rates come after it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use async_nats::Client;
use concord_installation::Installation;
use concord_wire::subject::{Lane, Service, Subject, SubjectSpace};
use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

mod agents;
mod cards;
mod matching;
pub(super) mod print;

use super::aims::{self, Aim};
use super::driver;
use super::host::HostReport;
use super::installation;
use super::measurements::Options;
use super::meter::Meter;
use super::numbers::{percentile_ms, round};
use super::{raw, subjects};
use agents::Agents;
pub(super) use matching::{Found, MatchingReport};

/// Who opens the tasks.
const OPENER: &str = "bench";
/// A task that takes longer than this ends the measurement.
const PATIENCE: Duration = Duration::from_secs(120);
/// The tasks that warm caches and connections before the first measurement, and are not counted.
const WARMING: usize = 40;
/// One opener opens all tasks; as many as it likes may be open at once.
const UNBOUNDED: &str = "service.quota.open_tasks=0";
/// The strategies, in the order in which they are measured.
const STRATEGIES: [&str; 8] = [
    "round_robin",
    "capability",
    "contract_net",
    "broadcast",
    "consensus",
    "poll",
    "swarm",
    "panel",
];

/// The tasks of one measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskLoad {
    /// Tasks of each strategy.
    pub(super) tasks: usize,
    /// Registered agents.
    pub(super) agents: usize,
    /// Tasks under way at once.
    pub(super) concurrency: usize,
    /// Processes of each service.
    pub(super) replicas: usize,
}

/// The tasks of one strategy.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StrategyReport {
    /// The strategy.
    pub(super) strategy: &'static str,
    /// Assignments and awards that agents were given for one task.
    pub(super) assignments_per_task: f64,
    /// Processor time of a task in milliseconds, all processes.
    pub(super) cpu_ms_per_task: f64,
    /// The same, by kind of process.
    pub(super) cpu_ms_by_process: BTreeMap<String, f64>,
    /// Messages that the broker was sent for a task, acknowledgements and requests to it among them.
    pub(super) broker_in_per_task: f64,
    /// Tasks that ended a second.
    pub(super) per_second: f64,
    /// From request to result, 50th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    /// The same, 99th percentile.
    pub(super) p99_ms: f64,
    /// By how many tasks the agent with most and the agent with fewest differ; none where agents do not take turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) most_minus_fewest: Option<u64>,
    /// Where the machine's processor time went.
    pub(super) host: HostReport,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TasksReport {
    /// Processors of the machine.
    pub(super) cores: usize,
    /// Whether the programs were built without optimisation.
    pub(super) debug_build: bool,
    /// Registered agents.
    pub(super) agents: usize,
    /// Tasks of each strategy.
    pub(super) tasks: usize,
    /// Tasks under way at once.
    pub(super) concurrency: usize,
    /// Processes of each service.
    pub(super) replicas: usize,
    /// Raw broker: messages pulled, appended under the lock and acknowledged, a second.
    pub(super) raw_per_second: f64,
    /// Processor time of one of these, in microseconds, by process.
    pub(super) raw_cpu_us: BTreeMap<String, f64>,
    /// Each strategy.
    pub(super) strategies: Vec<StrategyReport>,
    /// How long it takes to find who can do something.
    pub(super) matching: MatchingReport,
    /// What is wanted, and whether it is so.
    pub(super) aims: Vec<Aim>,
    /// How often a limit of the services intervened.
    pub(super) limited: u64,
}

/// Measures everything; `tell` is told what is measured next.
pub(super) async fn measure(
    options: &Options,
    load: TaskLoad,
    tell: impl Fn(&str),
) -> anyhow::Result<TasksReport> {
    tell("the raw broker");
    let raw = raw::measure(options, 0).await?;
    tell(&format!("{} agents that register", load.agents));
    let mut plan = installation::unlimited(options, "tasks");
    plan = plan.with_service_setting(Service::Coordinator, UNBOUNDED);
    for replicas in plan.replicas.values_mut() {
        *replicas = load.replicas;
    }
    let installation = installation::start(options, plan).await?;
    let measured = on_installation(&installation, load, &tell).await;
    let (strategies, matching) = measured.with_context(|| {
        let logs = installation.log_tails();
        format!("the tasks did not all end; the ends of the logs:\n{logs}")
    })?;
    let limited = installation::stop(installation, "tasks").await?;
    let report = TasksReport {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        debug_build: cfg!(debug_assertions),
        agents: load.agents,
        tasks: load.tasks,
        concurrency: load.concurrency,
        replicas: load.replicas,
        raw_per_second: round(raw.per_second),
        raw_cpu_us: raw.cpu_us,
        strategies,
        matching,
        aims: Vec::new(),
        limited,
    };
    Ok(TasksReport {
        aims: aims::of_tasks(&report),
        ..report
    })
}

async fn on_installation(
    installation: &Installation,
    load: TaskLoad,
    tell: &impl Fn(&str),
) -> anyhow::Result<(Vec<StrategyReport>, MatchingReport)> {
    let url = installation.server_url();
    let agents = Agents::register(url, load.agents).await?;
    let client = driver::connect(url).await?;
    tell("who can do something");
    let matching = matching::measure(&client, load.agents).await?;
    let mut driven = Driven::begin(&client).await?;
    let warm = TaskLoad {
        tasks: WARMING.min(load.tasks),
        ..load
    };
    driven.drive("warm", "round_robin", warm).await?;
    let mut reports = Vec::new();
    for strategy in STRATEGIES {
        tell(&format!("{} tasks by {strategy}", load.tasks));
        agents.forget();
        let before = meter(installation).await?;
        let mut latencies = driven.drive(strategy, strategy, load).await?;
        let usage = before.until(&meter(installation).await?, load.tasks);
        usage.warn_if_disturbed(strategy);
        latencies.sort();
        let (given, difference) = agents.given();
        reports.push(StrategyReport {
            strategy,
            assignments_per_task: round(given as f64 / load.tasks as f64),
            cpu_ms_per_task: usage.cpu_ms_per_case,
            cpu_ms_by_process: usage.cpu_ms_by_process,
            broker_in_per_task: usage.broker_in_per_case,
            per_second: usage.per_second,
            p50_ms: percentile_ms(&latencies, 0.50),
            p99_ms: percentile_ms(&latencies, 0.99),
            most_minus_fewest: (strategy == "round_robin").then_some(difference),
            host: usage.host,
        });
    }
    Ok((reports, matching))
}

async fn meter(installation: &Installation) -> anyhow::Result<Meter> {
    let broker = installation
        .broker()
        .context("the installation has no broker")?;
    Meter::read(&installation::processes(installation)?, broker).await
}

/// Who opens tasks and waits for their ends.
struct Driven<'a> {
    client: &'a Client,
    told: async_nats::Subscriber,
}

impl<'a> Driven<'a> {
    async fn begin(client: &'a Client) -> anyhow::Result<Self> {
        let told = client.subscribe(subjects::inbox(OPENER)?).await?;
        client.flush().await?;
        Ok(Self { client, told })
    }

    /// Opens tasks and waits until all have ended; the latency of each, in the order of their ends.
    async fn drive(
        &mut self,
        name: &str,
        strategy: &str,
        load: TaskLoad,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut begun: HashMap<String, Instant> = HashMap::new();
        let mut latencies = Vec::with_capacity(load.tasks);
        let mut next = 0;
        while latencies.len() < load.tasks {
            while next < load.tasks && begun.len() < load.concurrency {
                let task = format!("{name}-{next}");
                self.open(
                    &task,
                    strategy,
                    cards::criteria(strategy, next, load.agents),
                )
                .await?;
                begun.insert(task, Instant::now());
                next += 1;
            }
            let told = tokio::time::timeout(PATIENCE, self.told.next()).await;
            let told = told.with_context(|| {
                let (under_way, ended) = (begun.len(), latencies.len());
                format!(
                    "no task ended in {} s: {under_way} are under way, after {ended}",
                    PATIENCE.as_secs()
                )
            })?;
            let told = told.context("the connection to the broker has ended")?;
            if let Some(task) = ended(&told)?
                && let Some(started) = begun.remove(&task)
            {
                latencies.push(started.elapsed());
            }
        }
        Ok(latencies)
    }

    async fn open(&self, task: &str, strategy: &str, criteria: Value) -> anyhow::Result<()> {
        let terms = json!({
            "task_id": task, "strategy": strategy, "task": { "type": "bench" }, "criteria": criteria,
            "deadline_ms": 120_000,
        });
        let request = json!({
            "message_id": format!("open-{task}"), "timestamp": "2026-11-21T20:15:00.000Z", "from_agent": OPENER,
            "to_agent": "coordinator", "message_type": "request",
            "payload": { "action": "open_task", "parameters": terms },
        });
        let subject = subjects::message_outside_cases(OPENER, "coordinator", "request")?;
        Ok(self
            .client
            .publish(subject, request.to_string().into())
            .await?)
    }
}

/// The task of whose end a message tells. A task that fails or is refused ends the measurement.
fn ended(message: &async_nats::Message) -> anyhow::Result<Option<String>> {
    let Ok(Subject::Message { kind, .. }) = SubjectSpace::default().parse(&message.subject) else {
        return Ok(None);
    };
    let body: Value = serde_json::from_slice(&message.payload)?;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    match kind.as_str() {
        "error" => bail!(
            "a task failed: {}",
            text("/payload/error_message").unwrap_or("?")
        ),
        "notification" if text("/payload/event") == Some("task_completed") => {
            Ok(text("/payload/data/task_id").map(str::to_owned))
        }
        _ => Ok(None),
    }
}

/// What the coordinator says to anybody.
fn said_by_coordinator() -> String {
    SubjectSpace::default().messages_from(Lane::Normal, &Service::Coordinator.agent_id())
}
