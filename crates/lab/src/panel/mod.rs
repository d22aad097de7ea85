//! `concord-lab panel run`: the sample panel reviews a file of contracts, one case a contract.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

mod agents;
mod agreement;
pub(crate) mod contract;
pub(crate) mod events;
mod runner;
pub(crate) mod stage;
mod summary;

pub(crate) use agents::{folder, names};

use concord_cli::shared::connection::ConnectionArgs;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output;
use runner::CaseResult;
use stage::{Stage, StageOptions};
use summary::Summary;

/// The verbs of `concord-lab panel`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PanelVerb {
    /// Review contracts, one case each, and print a summary.
    Run(RunArgs),
}

/// Arguments of `concord-lab panel run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  concord-lab panel run --contracts contracts.jsonl
  concord-lab panel run --contracts contracts.jsonl --limit 20 --json report.json
  concord-lab panel run --contracts contracts.jsonl --directory data; concord up --directory data

Without --server the run has an installation of its own. With it, agents that nobody speaks for are started.")]
pub(crate) struct RunArgs {
    /// Contracts, one JSON object a line: contract_id, title, clauses, labels.
    #[arg(long, value_name = "FILE")]
    contracts: PathBuf,
    /// Review the first N contracts only.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write the report, with a line for each case, as JSON to this file; - for standard output.
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Cases at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Start an installation for this run, even where CONCORD_SERVER names one.
    #[arg(long)]
    local: bool,
    /// Keep the data of the local installation in this folder.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The folder of the panel's programs; found above this program or the current folder when absent.
    #[arg(long, value_name = "DIR")]
    panel: Option<PathBuf>,
}

/// The report as it is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    summary: &'a Summary,
    cases: &'a [CaseResult],
}

/// Exit code of a run that the user has stopped.
pub(crate) const STOPPED: u8 = 130;

pub(crate) async fn run(connection: &ConnectionArgs, verb: PanelVerb) -> Result<u8, Failure> {
    let PanelVerb::Run(args) = verb;
    let contracts = contract::read_lines(&args.contracts, args.limit)?;
    let stop = concord_runtime::service::shutdown::on_signal()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let bar = bar(contracts.len() as u64);
    let local = args.local || args.directory.is_some() || connection.server.is_none();
    let options = StageOptions {
        other: (!local).then(|| connection.clone()),
        directory: args.directory.clone(),
        panel: args.panel.clone(),
    };
    let set = Stage::start(&options, |step| show_step(&bar, step));
    let stage = tokio::select! {
        stage = set => stage?,
        () = stop.cancelled() => return Ok(STOPPED),
    };
    show_step(&bar, "reviewing");
    let begun = Instant::now();
    let mut done = 0_usize;
    let progress = |result: &CaseResult| {
        done += 1;
        bar.inc(1);
        if let Some(why) = &result.refused {
            bar.suspend(|| eprintln!("contract {}: {why}", result.contract_id));
        }
        if bar.is_hidden() && done.is_multiple_of(50) {
            eprintln!("{done} of {} decided", contracts.len());
        }
    };
    let results = tokio::select! {
        results = runner::run(&stage.broker, &contracts, args.concurrency.into(), progress) => Some(results),
        () = stop.cancelled() => None,
    };
    let wall = begun.elapsed();
    bar.set_message("stopping");
    if let Some(Err(_)) = &results {
        bar.suspend(|| eprintln!("{}", stage.log_tails()));
    }
    stage.stop().await;
    bar.finish_and_clear();
    let Some(results) = results else {
        return Ok(STOPPED);
    };
    let results = results?;
    let summary = Summary::new(&results, wall, args.concurrency.into());
    report(
        args.json.as_deref(),
        &Report {
            summary: &summary,
            cases: &results,
        },
    )?;
    match summary.cases - summary.decided {
        0 => Ok(0),
        without => Err(Failure::failed(format!(
            "{without} of {} cases have no decision",
            summary.cases
        ))),
    }
}

/// The summary for people, and the report for programs where it is wanted.
fn report(out: Option<&Path>, report: &Report<'_>) -> Result<(), Failure> {
    let text = report.summary.to_string();
    match out {
        None => output::print(&text),
        // With JSON on standard output nothing else may be on it.
        Some(out) if out == Path::new("-") => {
            eprint!("{text}");
            output::json(report)
        }
        Some(out) => {
            let failed = |error: &dyn std::error::Error| {
                Failure::failed(format!("{} cannot be written: {error}", out.display()))
            };
            let json = serde_json::to_string_pretty(report).map_err(|error| failed(&error))? + "\n";
            std::fs::write(out, json).map_err(|error| failed(&error))?;
            output::print(&text)
        }
    }
}

fn bar(cases: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(cases), ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(cases);
    let style =
        ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {per_sec} {eta}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Shows what the run waits for: in the bar on a terminal, else as a line.
fn show_step(bar: &ProgressBar, step: &str) {
    if bar.is_hidden() {
        eprintln!("{step}");
    } else {
        bar.set_message(step.to_owned());
    }
}
