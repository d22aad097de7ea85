//! `concord-lab bench`: measurements beside the raw broker, in the same run.

use clap::Args;
use concord_cli::shared::args::JsonArg;
use concord_cli::shared::failure::Failure;
use concord_cli::shared::output;

mod agents;
mod attacks;
mod broker_schedules;
mod cases;
mod deadlines;
mod flood;
mod installation;
mod measurements;
mod memory;
mod print;
mod process;
mod raw;
mod step;
mod subjects;

use measurements::Options;

/// Arguments of `concord-lab bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts brokers and services of its own on free ports. The numbers that are wanted are those of a build as it is shipped
(cargo build --profile dist). On a busy machine only the ratio to the raw broker means something.

The exit code is 1 when a limit of the services intervened: the numbers are those of the limit then. --flood measures the
limits themselves.

Example:
  target/dist/concord-lab bench --json")]
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
    /// Whole cases of each measurement.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    cases: u32,
    /// Debates whose deadlines are due at one instant.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    debates: u32,
    /// Measure nothing but these deadlines.
    #[arg(long)]
    deadlines_only: bool,
    /// Measure nothing but how long ten quiet agents wait for answers alone, while as much is stored that nobody reads, and
    /// while another floods.
    #[arg(long, conflicts_with = "deadlines_only")]
    flood: bool,
    /// A setting for every service that is measured, in place of that of the measurement.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

/// Measures, and prints the report.
pub(crate) async fn run(args: BenchArgs) -> Result<u8, Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::failed(format!("no temporary folder: {error}")))?;
    let options = Options {
        messages: args.messages as usize,
        rounds: args.rounds as usize,
        in_flight: args.in_flight as usize,
        cases: args.cases as usize,
        open_debates: args.debates as usize,
        settings: args.set,
        ..Options::new(folder.path())
    };
    if cfg!(debug_assertions) {
        eprintln!(
            "this is a debug build: the numbers are several times worse than those of `cargo build --profile dist`"
        );
    }
    let failed = |error| Failure::failed(format!("{error:#}"));
    if args.deadlines_only {
        let report = deadlines::measure(&options).await.map_err(failed)?;
        if args.json.json {
            output::json(&report)?;
        } else {
            print::deadlines(&report);
        }
        return result(report.limited);
    }
    if args.flood {
        let report = flood::measure(&options).await.map_err(failed)?;
        if args.json.json {
            output::json(&report)?;
        } else {
            print::flood(&report);
        }
        return Ok(0);
    }
    let report = measurements::run(&options, |what| eprintln!("measuring {what}"))
        .await
        .map_err(failed)?;
    if args.json.json {
        output::json(&report)?;
    } else {
        print::report(&report);
    }
    result(report.limited)
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
mod tests {
    use super::*;

    #[test]
    fn a_measurement_of_a_limit_is_no_result() {
        assert_eq!(result(0).unwrap(), 0);
        let failure = result(7).unwrap_err();
        assert_eq!(failure.code(), 1);
        assert!(failure.to_string().contains("intervened 7 times"));
    }
}
