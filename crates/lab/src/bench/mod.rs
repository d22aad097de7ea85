//! `concord-lab bench`: measurements beside the raw broker, in the same run.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use concord_cli::shared::args::JsonArg;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output;
use serde::Serialize;

mod agents;
mod aims;
mod alerts;
mod attacks;
mod broker_schedules;
mod by_hand;
mod cases;
mod deadlines;
mod driver;
mod flood;
mod host;
mod installation;
mod long;
mod measurements;
mod memory;
mod meter;
mod numbers;
mod print;
mod process;
mod quiet;
mod raw;
mod ready_process;
mod snapshots;
mod step;
mod subjects;
mod takeover;
mod tasks;

pub(crate) use agents::program::AgentArgs;
use agents::{AgentKind, AgentProgram};
use cases::Load;
use measurements::Options;
use tasks::TaskLoad;

/// Cases of `--long`.
const LONG_CASES: u32 = 100_000;
/// Tasks of each strategy, and agents, of `--tasks`.
const TASKS: &str = "500";
const TASK_AGENTS: usize = 100;
/// Alerts of `--alerts`.
const ALERTS: &str = "300";
/// Debates of `--snapshots`.
const SNAPSHOTS: &str = "500";
/// Blows of each kind of `--takeover`.
const BLOWS: &str = "10";
/// Cases of each other measurement.
const CASES: u32 = 2_000;

/// Arguments of `concord-lab bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts brokers, services and agents of its own on free ports; every one is a process of its own. The numbers that are wanted
are those of a build as it is shipped (cargo build --profile dist), on a machine that does nothing else. On a busy machine
only ratios of one run, processor times and counts mean something; a warning says so.

What is wanted stands at the end, each line with `met` or `not met`; an aim that is not met is no failure. The exit code is
1 when a limit of the services intervened: the numbers are those of the limit then. --flood measures the limits themselves.

Examples:
  target/dist/concord-lab bench --json
  target/dist/concord-lab bench --replicas 1,2,4 --cases 5000      one, two and four processes of each service
  target/dist/concord-lab bench --replicas 1 --agents rust         without Python
  target/dist/concord-lab bench --tasks 10000 --agents 1000        tasks by each strategy, over a thousand agents
  target/dist/concord-lab bench --tasks --replicas 4               the same with four processes of each service
  target/dist/concord-lab bench --long                             100,000 cases: what grows with their number
  target/dist/concord-lab bench --long --cases 1000000 --json      for a night")]
pub(crate) struct BenchArgs {
    /// Messages of each measurement of the raw broker and of the step.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    messages: u32,
    /// How often the raw broker and the step are measured, in turn; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Deliveries under way at once, of the raw broker and of the step.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    in_flight: u32,
    /// Whole cases of each measurement, and before --takeover: 2,000, and 100,000 with --long.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    cases: Option<u32>,
    /// Cases under way at once with --replicas, --long, --snapshots and --takeover.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// Measure whole cases with so many processes of each service, one measurement for each number; beside them the raw broker,
    /// the step, a lone case and an orchestrator written by hand. With --long, --tasks and --deadlines-only one number.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=32))]
    replicas: Vec<u8>,
    /// What the five agents are written in, `python` or `rust`; the lone case always has the fastest. With --tasks how many agents
    /// there are, 100 when absent.
    #[arg(long, value_name = "KIND|N")]
    agents: Option<AgentsArg>,
    /// Measure nothing but so many tasks by each strategy, and how long it takes to find who can do something.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = TASKS, group = "only",
          value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,
    /// Measure nothing but how soon so many alerts are heard, one after the other, while 100,000 messages wait.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = ALERTS, group = "only",
          value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "replicas")]
    alerts: Option<u32>,
    /// Measure nothing but how long the parties of so many debates hold what they write, for a snapshot (`memory_sync_ms`).
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = SNAPSHOTS, group = "only",
          value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "replicas")]
    snapshots: Option<u32>,
    /// Measure nothing but how long everybody waits when the coordinator that works is killed and another takes over, so many times,
    /// and when it is frozen; after --cases of one opener.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = BLOWS, group = "only",
          value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "replicas")]
    takeover: Option<u32>,
    /// Measure nothing but what grows with the number of cases.
    #[arg(long, group = "only")]
    long: bool,
    /// Debates whose deadlines are due at one instant.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    debates: u32,
    /// Measure nothing but these deadlines; with --replicas so many processes of each service, of which others stand by unless
    /// --set work.standby=false.
    #[arg(long, group = "only")]
    deadlines_only: bool,
    /// Measure nothing but how long ten quiet agents wait for answers alone, while as much is stored that nobody reads, and
    /// while another floods.
    #[arg(long, group = "only", conflicts_with = "replicas")]
    flood: bool,
    /// The folder of the services' programs; that of this program when absent.
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
    /// A setting for every service that is measured, in place of that of the measurement.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

impl BenchArgs {
    fn options(&self, folder: &Path) -> Result<Options, Failure> {
        let options = Options {
            messages: self.messages as usize,
            rounds: self.rounds as usize,
            in_flight: self.in_flight as usize,
            cases: self.cases.unwrap_or(CASES) as usize,
            open_debates: self.debates as usize,
            binaries: self.binaries.clone(),
            settings: self.set.clone(),
            replicas_concurrency: self.concurrency as usize,
            ..Options::new(folder)
        };
        let has_agents_of_its_own = [self.tasks, self.alerts, self.snapshots, self.takeover]
            .iter()
            .any(Option::is_some);
        if self.deadlines_only || self.flood || has_agents_of_its_own {
            return Ok(options);
        }
        let kind = match self.agents {
            None => AgentKind::Python,
            Some(AgentsArg::Kind(kind)) => kind,
            Some(AgentsArg::Count(_)) => {
                return Err(Failure::usage(
                    "cases have five agents; --agents takes a number with --tasks, and python or rust without",
                ));
            }
        };
        let options = Options {
            agents: AgentProgram::find(kind)?,
            ..options
        };
        let options = Options {
            lone_cases: options.lone_cases.min(options.cases),
            ..options
        };
        if self.replicas.is_empty() {
            // The run of everything has fewer of these cases, so that it stays within minutes.
            let replicas_cases = options.replicas_cases.min(options.cases);
            return Ok(Options {
                replicas_cases,
                ..options
            });
        }
        Ok(Options {
            concurrency: Vec::new(),
            replicas: self.replicas.iter().copied().map(usize::from).collect(),
            replicas_cases: options.cases,
            everything: false,
            ..options
        })
    }

    /// The tasks of `--tasks`; none without it.
    fn task_load(&self) -> Result<Option<TaskLoad>, Failure> {
        let Some(tasks) = self.tasks else {
            return Ok(None);
        };
        let agents = match self.agents {
            None => TASK_AGENTS,
            Some(AgentsArg::Count(count)) => count,
            Some(AgentsArg::Kind(_)) => {
                return Err(Failure::usage(
                    "the agents of tasks are simulated; --agents takes their number with --tasks, for example --agents 1000",
                ));
            }
        };
        Ok(Some(TaskLoad {
            tasks: tasks as usize,
            agents,
            concurrency: self.concurrency as usize,
            replicas: self.one_number()?,
        }))
    }

    /// The processes of each service where all is measured on one installation.
    fn one_number(&self) -> Result<usize, Failure> {
        match *self.replicas.as_slice() {
            [] => Ok(1),
            [replicas] => Ok(usize::from(replicas)),
            _ => Err(Failure::usage(
                "--long, --tasks and --deadlines-only run on one installation; give --replicas one number, for example --replicas 2",
            )),
        }
    }

    /// The cases of `--long`.
    fn long(&self, options: &Options) -> Result<Load, Failure> {
        let replicas = self.one_number()?;
        let total = self.cases.unwrap_or(LONG_CASES) as usize;
        if total < 10 {
            return Err(Failure::usage(
                "--long compares tenths; give --cases 10 or more",
            ));
        }
        Ok(Load {
            replicas,
            agents: options.agents.clone(),
            concurrency: self.concurrency as usize,
            total,
            hear_answers: false,
        })
    }
}

/// What `--agents` says: what five agents are written in, or how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentsArg {
    Kind(AgentKind),
    Count(usize),
}

impl std::str::FromStr for AgentsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(kind) = AgentKind::from_str(text, false) {
            return Ok(Self::Kind(kind));
        }
        let count = text
            .parse()
            .ok()
            .filter(|count| (1..=100_000).contains(count));
        count.map(Self::Count).ok_or_else(|| {
            "it is python or rust, or with --tasks a number of agents from 1 to 100000".to_owned()
        })
    }
}

/// Measures, and prints the report.
pub(crate) async fn run(args: BenchArgs) -> Result<u8, Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::failed(format!("no temporary folder: {error}")))?;
    let options = args.options(folder.path())?;
    if cfg!(debug_assertions) {
        eprintln!(
            "this is a debug build: the numbers are several times worse than those of `cargo build --profile dist`"
        );
    }
    let failed = |error| Failure::failed(format!("{error:#}"));
    if let Some(load) = args.task_load()? {
        let tell = |what: &str| eprintln!("measuring {what}");
        let report = tasks::measure(&options, load, tell).await.map_err(failed)?;
        show(args.json, &report, tasks::print::tasks)?;
        return result(report.limited);
    }
    if let Some(alerts) = args.alerts {
        let report = alerts::measure(&options, alerts as usize)
            .await
            .map_err(failed)?;
        show(args.json, &report, print::alerts)?;
        return Ok(0);
    }
    if let Some(debates) = args.snapshots {
        let report = snapshots::measure(&options, debates as usize)
            .await
            .map_err(failed)?;
        show(args.json, &report, print::snapshots)?;
        return Ok(0);
    }
    if let Some(times) = args.takeover {
        let report = takeover::measure(&options, times as usize)
            .await
            .map_err(failed)?;
        show(args.json, &report, print::takeover)?;
        return Ok(0);
    }
    if args.long {
        let load = args.long(&options)?;
        let report = long::measure(&options, &load).await.map_err(failed)?;
        show(args.json, &report, print::long)?;
        return result(report.limited);
    }
    if args.deadlines_only {
        let replicas = args.one_number()?;
        let report = deadlines::measure(&options, replicas);
        let report = report.await.map_err(failed)?;
        show(args.json, &report, print::deadlines_only)?;
        return result(report.limited);
    }
    if args.flood {
        let report = flood::measure(&options).await.map_err(failed)?;
        show(args.json, &report, print::flood)?;
        return Ok(0);
    }
    let report = measurements::run(&options, |what| eprintln!("measuring {what}"))
        .await
        .map_err(failed)?;
    show(args.json, &report, print::report)?;
    result(report.limited)
}

/// Runs one agent of a measurement, until the broker ends.
pub(crate) async fn run_agent(args: AgentArgs) -> Result<u8, Failure> {
    let ran = agents::program::run(args).await;
    ran.map_err(|error| Failure::failed(format!("{error:#}")))?;
    Ok(0)
}

fn show<T: Serialize>(json: JsonArg, report: &T, print: impl FnOnce(&T)) -> Result<(), Failure> {
    if json.json {
        output::json(report)?;
    } else {
        print(report);
    }
    Ok(())
}

/// The result of a measurement in which a limit has intervened so often: only without that it is one.
fn result(limited: u64) -> Result<u8, Failure> {
    match limited {
        0 => Ok(0),
        times => Err(Failure::failed(format!(
            "a limit of the services intervened {times} times, so this has measured the limit; leave work.agent_rate_max \
             as the measurement sets it"
        ))),
    }
}

#[cfg(test)]
mod tests;
