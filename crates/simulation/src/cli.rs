//! The command line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::Parser;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::faults::{Faults, InjectedBug};
use crate::options::Options;
use crate::report::{Counts, SeedReport, WORLD_VERSION};
use crate::simulation::run;

/// Runs Concord in simulated worlds in which messages are delayed, doubled and lost and processes are killed, and checks
/// after each whether the invariants of the design hold. The same seed gives the same world on every machine, as long as
/// the version of the world, which is printed with it, is the same.
///
/// Exit codes: 0 when all seeds hold, 1 when one does not, 2 when the arguments are wrong.
#[derive(Debug, Parser)]
#[command(name = "concord-simulate", version)]
pub struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "S")]
    from: u64,
    /// Run this seed alone.
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Say what happens, line by line. Only with --seed.
    #[arg(long, requires = "seed")]
    verbose: bool,
    /// Inject a bug that the checkers must find.
    #[arg(long, value_name = "BUG", value_parser = PossibleValuesParser::new(InjectedBug::ALL.map(InjectedBug::as_str)))]
    plant: Option<String>,
    /// Worlds in which disagreements climb the ladder: challenges, people who rule, gates, operators.
    #[arg(long)]
    ladder: bool,
    /// Worlds in which tasks are handed out besides.
    #[arg(long)]
    tasks: bool,
    /// Worlds of a hosted agent: its circuit breaker, its queue, and an endpoint that fails.
    #[arg(long, conflicts_with_all = ["ladder", "tasks"])]
    hosted: bool,
    /// Let nothing go wrong: no loss, no delay, no crash.
    #[arg(long)]
    calm: bool,
    /// Replicas of each service.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: u8,
    /// Go on after a seed that does not hold.
    #[arg(long)]
    keep_going: bool,
    /// Write the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary<'a> {
    /// The version of the world that the seeds belong to.
    world: u32,
    from: u64,
    counts: Counts,
    failed: &'a [SeedReport],
    reproduce: Option<String>,
}

impl Arguments {
    /// Runs what is asked for.
    pub fn run(&self) -> ExitCode {
        let options = Options {
            faults: if self.calm {
                Faults::none()
            } else {
                Faults::default()
            },
            injected_bug: self.plant.as_deref().and_then(InjectedBug::parse),
            replicas: usize::from(self.replicas),
            ladder: self.ladder,
            tasks: self.tasks,
            hosted: self.hosted,
            intrusions: Arc::default(),
            verbose: self.verbose,
        };
        let (from, seeds) = self.seed.map_or((self.from, self.seeds), |seed| (seed, 1));
        if !self.json {
            println!(
                "Seeds {from} to {} of world {WORLD_VERSION}.",
                from.saturating_add(seeds - 1)
            );
        }
        let mut result = run_all(from, seeds, &options, self.keep_going, !self.json);
        result.failed.sort_by_key(|report| report.seed);
        let written = if self.json {
            self.write_json(from, &result)
        } else {
            self.write_text(from, seeds, &result)
        };
        match (written, result.failed.is_empty()) {
            (Ok(()), true) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }

    fn write_json(&self, from: u64, result: &Outcome) -> std::io::Result<()> {
        let reproduce = result
            .failed
            .first()
            .map(|report| self.command(report.seed));
        let summary = Summary {
            world: WORLD_VERSION,
            from,
            counts: result.counts,
            failed: &result.failed,
            reproduce,
        };
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &summary)?;
        writeln!(out)
    }

    fn write_text(&self, from: u64, seeds: u64, result: &Outcome) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        for line in result.log.iter() {
            writeln!(out, "{line}")?;
        }
        let counts = &result.counts;
        let of_ladder = counts.ladder.rows().into_iter().filter(|_| self.ladder);
        let of_hosted = counts.hosted.rows().into_iter().filter(|_| self.hosted);
        // The world of a hosted agent has no cases and events to count.
        let rows = counts
            .rows()
            .into_iter()
            .filter(|(name, value, _)| !self.hosted || *value > 0 || *name == "violations");
        for (name, value, meaning) in rows.chain(of_ladder).chain(of_hosted) {
            writeln!(out, "{name:>15}  {value:>10}  {meaning}")?;
        }
        for report in &result.failed {
            writeln!(
                out,
                "\nSeed {} of world {} does not hold:",
                report.seed, report.world
            )?;
            for violation in &report.violations {
                writeln!(out, "  - {violation}")?;
            }
            writeln!(out, "Run it again: {}", self.command(report.seed))?;
        }
        let verdict = if result.failed.is_empty() {
            "all hold"
        } else {
            "not all hold"
        };
        writeln!(
            out,
            "Seeds {from} to {}: {verdict}.",
            from.saturating_add(seeds - 1)
        )
    }

    /// The command that runs a seed again exactly as it was run.
    fn command(&self, seed: u64) -> String {
        let mut command =
            format!("cargo run -p concord-simulation --release -- --seed {seed} --verbose");
        if let Some(plant) = &self.plant {
            command.push_str(&format!(" --plant {plant}"));
        }
        if self.ladder {
            command.push_str(" --ladder");
        }
        if self.tasks {
            command.push_str(" --tasks");
        }
        if self.hosted {
            command.push_str(" --hosted");
        }
        if self.calm {
            command.push_str(" --calm");
        }
        if self.replicas != 2 {
            command.push_str(&format!(" --replicas {}", self.replicas));
        }
        command
    }
}

#[derive(Default)]
struct Outcome {
    counts: Counts,
    failed: Vec<SeedReport>,
    log: Vec<String>,
}

/// Runs seeds on all cores. Each world is a thread's own, so which core runs a seed changes nothing about it.
fn run_all(from: u64, seeds: u64, options: &Options, keep_going: bool, progress: bool) -> Outcome {
    let bar = if progress && std::io::stderr().is_terminal() {
        ProgressBar::new(seeds)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} seeds, {eta} left") {
        bar.set_style(style);
    }
    let (next, stop, outcome) = (
        AtomicU64::new(0),
        AtomicBool::new(false),
        Mutex::new(Outcome::default()),
    );
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= seeds {
                        break;
                    }
                    let mut report = run(from.saturating_add(place), options);
                    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    outcome.counts.add(&report.counts);
                    outcome.log.append(&mut report.log);
                    if !report.violations.is_empty() {
                        stop.store(!keep_going, Ordering::Relaxed);
                        outcome.failed.push(report);
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}
