//! All measurements in one run, on one machine, so that ratios mean something where absolute numbers do not.
//!
//! 1. [`raw`]: pull a message, append under the wildcard lock, acknowledge: what the broker itself allows.
//! 2. [`step`]: the facilitator's step at the same concurrency, on the same kind of load.
//! 3. [`cases`]: whole cases a second with agents that answer at once, every service its own process; the latency of a
//!    lone case; where the processor time goes.
//! 4. [`memory`]: what each service holds resident with many cases open.
//! 5. [`deadlines`]: many debates whose deadlines are due at one instant, beside as many bare schedules of the broker.

use std::path::PathBuf;

use serde::Serialize;

use super::{cases, deadlines, memory, process, raw, step};

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
    /// Whole cases of each measurement.
    pub(super) cases: usize,
    /// Cases under way at once, one measurement each.
    pub(super) concurrency: Vec<usize>,
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
            cases: 2_000,
            concurrency: vec![32, 256],
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
    /// Whole cases, a row for each concurrency.
    pub(super) cases: Vec<cases::CasesReport>,
    /// A case alone: 50th percentile from request to decision, in milliseconds.
    pub(super) lone_p50_ms: f64,
    /// A case alone: 99th percentile.
    pub(super) lone_p99_ms: f64,
    /// Resident memory with many cases open.
    pub(super) memory: memory::MemoryReport,
    /// Many deadlines at one instant.
    pub(super) deadlines: deadlines::DeadlinesReport,
    /// How often a limit of the services intervened, in all measurements. Above 0 the numbers are those of the limit.
    pub(super) limited: u64,
}

impl Report {
    /// The round with the median share.
    pub(super) fn median_round(&self) -> Option<&Round> {
        self.rounds
            .iter()
            .find(|round| round.step_share_of_raw == self.step_share_of_raw)
    }
}

/// Measures everything; `progress` is told what is being measured.
pub(super) async fn run(
    options: &Options,
    mut progress: impl FnMut(&str),
) -> anyhow::Result<Report> {
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        progress(&format!(
            "round {round} of {}: raw broker: pull, append under the lock, acknowledge",
            options.rounds
        ));
        let raw = raw::measure(options, round).await?;
        progress(&format!(
            "round {round} of {}: facilitator: the same as a step",
            options.rounds
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
    let mut cases = Vec::new();
    // What it costs that the parties hear each other is shown beside the first concurrency.
    let silent = options.concurrency.iter().map(|all| (*all, false));
    let heard = options.concurrency.iter().take(1).map(|all| (*all, true));
    for (concurrency, hear_answers) in silent.chain(heard) {
        progress(&format!("whole cases, {concurrency} at once"));
        let load = cases::Load {
            concurrency,
            total: options.cases,
            hear_answers,
        };
        cases.push(cases::measure(options, load).await?);
    }
    progress("a case alone");
    let lone = cases::Load {
        concurrency: 1,
        total: options.lone_cases,
        hear_answers: false,
    };
    let lone = cases::measure(options, lone).await?;
    progress(&format!("memory with {} cases open", options.open_cases));
    let memory = memory::measure(options).await?;
    progress(&format!(
        "{} deadlines at one instant",
        options.open_debates
    ));
    let deadlines = deadlines::measure(options).await?;
    let limited_rounds = rounds.iter().map(|round| round.limited);
    let limited_cases = cases.iter().chain([&lone]).map(|cases| cases.limited);
    let limited =
        limited_rounds.chain(limited_cases).sum::<u64>() + memory.limited + deadlines.limited;
    Ok(Report {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        in_flight: options.in_flight,
        raw_per_second: median(rounds.iter().map(|round| round.raw.per_second)),
        step_per_second: median(rounds.iter().map(|round| round.step.per_second)),
        step_share_of_raw: median(rounds.iter().map(|round| round.step_share_of_raw)),
        rounds,
        cases,
        lone_p50_ms: lone.p50_ms,
        lone_p99_ms: lone.p99_ms,
        memory,
        deadlines,
        limited,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// With two decimal places.
pub(super) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
