//! All measurements in one run, on one machine, so that ratios mean something where absolute numbers do not.
//!
//! 1. [`raw`]: pull a message, append under the wildcard lock, acknowledge: what the broker itself allows.
//! 2. [`step`]: the facilitator's step at the same concurrency, on the same kind of load.
//! 3. [`cases`]: whole cases a second with agents that answer at once, every service and agent its own process; the latency
//!    of a lone case; where the processor time goes; the same with several processes of each service.
//! 4. [`by_hand`]: the same agents with an orchestrator as an engineer writes it in an afternoon.
//! 5. [`memory`]: what each service holds resident with many cases open.
//! 6. [`deadlines`]: many debates whose deadlines are due at one instant, beside as many bare schedules of the broker.
//!
//! What came out is compared with what is wanted ([`aims`]).

use std::path::PathBuf;

use serde::Serialize;

use super::agents::{AgentKind, AgentProgram, Transport};
use super::cases::{CasesReport, Load};
use super::numbers::median;
use super::{aims, by_hand, cases, deadlines, memory, process, raw, step};

/// The sizes of the measurements.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// The folder of streams and logs, on the disk that is to be measured.
    pub(super) directory: PathBuf,
    /// The folder of the services' programs; that of the running program when absent.
    pub(super) binaries: Option<PathBuf>,
    /// Messages of each raw and each step measurement.
    pub(super) messages: usize,
    /// The number of times that both are measured, in turn, so that both meet whatever else the machine does; medians are reported.
    pub(super) rounds: usize,
    /// Deliveries under way at once in both.
    pub(super) in_flight: usize,
    /// What the agents of whole cases are written in.
    pub(super) agents: AgentProgram,
    /// Whole cases of each measurement.
    pub(super) cases: usize,
    /// Cases under way at once, one measurement each.
    pub(super) concurrency: Vec<usize>,
    /// Processes of each service, one measurement each.
    pub(super) replicas: Vec<usize>,
    /// Cases of each of these.
    pub(super) replicas_cases: usize,
    /// Cases under way at once in each of these.
    pub(super) replicas_concurrency: usize,
    /// Whether memory and deadlines are measured too.
    pub(super) everything: bool,
    /// Cases one after the other, for the latency.
    pub(super) lone_cases: usize,
    /// Cases open at once, for the memory.
    pub(super) open_cases: usize,
    /// Debates open at once, with deadlines at one instant.
    pub(super) open_debates: usize,
    /// Settings for all services, `key=value`, in place of those of a measurement.
    pub(super) settings: Vec<String>,
    /// Messages of each quiet agent, ten a second, without a flood and during one.
    pub(super) flood_messages: usize,
}

impl Options {
    /// The measurement of the README, with everything in `directory`.
    pub(super) fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            binaries: None,
            messages: 20_000,
            rounds: 5,
            in_flight: 64,
            agents: AgentProgram::Rust,
            cases: 2_000,
            concurrency: vec![32, 256],
            replicas: vec![1, 2, 4],
            replicas_cases: 500,
            replicas_concurrency: 32,
            everything: true,
            lone_cases: 200,
            open_cases: 1_000,
            open_debates: 10_000,
            settings: Vec::new(),
            flood_messages: 200,
        }
    }
}

/// One measurement of the raw broker and, right after it, of the step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Round {
    /// The rate of the raw broker.
    pub(super) raw: process::Rate,
    /// The rate of the facilitator's step.
    pub(super) step: process::Rate,
    /// The second rate as a share of the first.
    pub(super) step_share_of_raw: f64,
    /// How often a limit of the facilitator intervened.
    pub(super) limited: u64,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    /// Processors of the machine.
    pub(super) cores: usize,
    /// Whether the programs were built without optimisation.
    pub(super) debug_build: bool,
    /// What the agents of whole cases are written in; the lone case has the fastest.
    pub(super) agents: AgentKind,
    /// Deliveries under way at once in the raw and the step measurement.
    pub(super) in_flight: usize,
    /// Raw broker: messages pulled, appended under the lock and acknowledged, a second.
    pub(super) raw_per_second: f64,
    /// The facilitator's steps a second.
    pub(super) step_per_second: f64,
    /// The second as a share of the first: the median of the rounds' shares.
    pub(super) step_share_of_raw: f64,
    /// The same of each round.
    pub(super) rounds: Vec<Round>,
    /// Whole cases, a row for each concurrency, and one in which the parties hear each other.
    pub(super) cases: Vec<CasesReport>,
    /// Whole cases, a row for each number of processes of each service.
    pub(super) replicas: Vec<CasesReport>,
    /// Concord beside an orchestrator written by hand, a row for each concurrency; with Python agents alone.
    pub(super) by_hand: Vec<Beside>,
    /// A case alone: 50th percentile from request to decision, in milliseconds.
    pub(super) lone_p50_ms: f64,
    /// A case alone: 99th percentile.
    pub(super) lone_p99_ms: f64,
    /// Resident memory with many cases open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<memory::MemoryReport>,
    /// Many deadlines at one instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadlines: Option<deadlines::DeadlinesReport>,
    /// What is wanted of all this, and whether it is so.
    pub(super) aims: Vec<aims::Aim>,
    /// How often a limit of the services intervened, in all measurements. Above 0 the numbers are those of the limit.
    pub(super) limited: u64,
}

/// The same cases with the same agents, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Beside {
    /// An orchestrator written by hand, of whose messages nothing is stored but the decision.
    pub(super) by_hand: by_hand::ByHandReport,
    /// The same with durable consumers, and with every message stored.
    pub(super) by_hand_stored: by_hand::ByHandReport,
    /// Concord, one process of each service.
    pub(super) concord: CasesReport,
}

impl Report {
    /// The round with the median share.
    pub(super) fn median_round(&self) -> Option<&Round> {
        self.rounds
            .iter()
            .find(|round| round.step_share_of_raw == self.step_share_of_raw)
    }

    fn count_limited(&self) -> u64 {
        let beside = self.by_hand.iter().map(|beside| &beside.concord);
        let cases = self.cases.iter().chain(&self.replicas).chain(beside);
        let memory = self.memory.iter().map(|memory| memory.limited);
        let deadlines = self.deadlines.iter().map(|deadlines| deadlines.limited);
        self.rounds
            .iter()
            .map(|round| round.limited)
            .chain(cases.map(|cases| cases.limited))
            .chain(memory)
            .chain(deadlines)
            .sum()
    }
}

/// Measures everything; `progress` is told what is being measured.
pub(super) async fn run(
    options: &Options,
    mut progress: impl FnMut(&str),
) -> anyhow::Result<Report> {
    let rounds = rounds(options, &mut progress).await?;
    let cases = whole_cases(options, &mut progress).await?;
    progress("a case alone, with the fastest agents");
    let lone = Load {
        agents: AgentProgram::Rust,
        ..load(options, 1, options.lone_cases)
    };
    let lone = cases::measure(options, &lone).await?;
    let replicas = replicas(options, &mut progress).await?;
    let by_hand = beside(options, &mut progress).await?;
    let (mut memory, mut deadlines) = (None, None);
    if options.everything {
        progress(&format!("memory with {} cases open", options.open_cases));
        memory = Some(memory::measure(options).await?);
        progress(&format!(
            "{} deadlines at one instant",
            options.open_debates
        ));
        deadlines = Some(deadlines::measure(options, 1).await?);
    }
    let mut report = Report {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        debug_build: cfg!(debug_assertions),
        agents: options.agents.kind(),
        in_flight: options.in_flight,
        raw_per_second: median(rounds.iter().map(|round| round.raw.per_second)),
        step_per_second: median(rounds.iter().map(|round| round.step.per_second)),
        step_share_of_raw: median(rounds.iter().map(|round| round.step_share_of_raw)),
        rounds,
        cases,
        replicas,
        by_hand,
        lone_p50_ms: lone.p50_ms,
        lone_p99_ms: lone.p99_ms,
        memory,
        deadlines,
        aims: Vec::new(),
        limited: lone.limited,
    };
    report.limited += report.count_limited();
    report.aims = aims::of_report(&report);
    Ok(report)
}

/// Cases with one process of each service, whose parties do not hear each other.
fn load(options: &Options, concurrency: usize, total: usize) -> Load {
    Load {
        replicas: 1,
        agents: options.agents.clone(),
        concurrency,
        total,
        hear_answers: false,
    }
}

async fn rounds(options: &Options, progress: &mut impl FnMut(&str)) -> anyhow::Result<Vec<Round>> {
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        let of = options.rounds;
        progress(&format!(
            "round {round} of {of}: raw broker: pull, append under the lock, acknowledge"
        ));
        let raw = raw::measure(options, round).await?;
        progress(&format!(
            "round {round} of {of}: facilitator: the same as a step"
        ));
        let (step, limited) = step::measure(options, round).await?;
        let step_share_of_raw = step.per_second / raw.per_second;
        rounds.push(Round {
            raw,
            step,
            step_share_of_raw,
            limited,
        });
    }
    Ok(rounds)
}

/// A measurement for each concurrency, and what it costs at the first that the parties hear each other.
async fn whole_cases(
    options: &Options,
    progress: &mut impl FnMut(&str),
) -> anyhow::Result<Vec<CasesReport>> {
    let mut cases = Vec::new();
    for concurrency in &options.concurrency {
        progress(&format!("whole cases, {concurrency} at once"));
        let load = load(options, *concurrency, options.cases);
        cases.push(cases::measure(options, &load).await?);
    }
    let first = options.concurrency.first();
    let concurrency = *first.unwrap_or(&options.replicas_concurrency);
    progress(&format!(
        "whole cases, {concurrency} at once, the parties hear each other"
    ));
    let heard = Load {
        hear_answers: true,
        ..load(options, concurrency, options.cases)
    };
    cases.push(cases::measure(options, &heard).await?);
    Ok(cases)
}

async fn replicas(
    options: &Options,
    progress: &mut impl FnMut(&str),
) -> anyhow::Result<Vec<CasesReport>> {
    let mut reports = Vec::new();
    let concurrency = options.replicas_concurrency;
    for replicas in &options.replicas {
        progress(&format!(
            "whole cases, {concurrency} at once, processes of each service: {replicas}"
        ));
        let load = Load {
            replicas: *replicas,
            ..load(options, concurrency, options.replicas_cases)
        };
        reports.push(cases::measure(options, &load).await?);
    }
    Ok(reports)
}

async fn beside(options: &Options, progress: &mut impl FnMut(&str)) -> anyhow::Result<Vec<Beside>> {
    let AgentProgram::Python(python) = &options.agents else {
        progress("no orchestrator written by hand: that is measured with --agents python");
        return Ok(Vec::new());
    };
    let (mut reports, total) = (Vec::new(), options.replicas_cases);
    for concurrency in aims::BESIDE_BY_HAND {
        progress(&format!(
            "an orchestrator written by hand, {concurrency} at once"
        ));
        let plain = (python, Transport::Plain);
        let by_hand = by_hand::measure(options, plain, concurrency, total).await?;
        progress(&format!("Concord beside it, {concurrency} at once"));
        let concord = cases::measure(options, &load(options, concurrency, total)).await?;
        progress(&format!(
            "an orchestrator written by hand that stores its messages, {concurrency} at once"
        ));
        let stored = (python, Transport::Stored);
        reports.push(Beside {
            by_hand,
            by_hand_stored: by_hand::measure(options, stored, concurrency, total).await?,
            concord,
        });
    }
    Ok(reports)
}
