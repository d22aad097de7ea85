//! The `concord-lab` command: the sample panel, the demonstration, and measurements. Operators need `concord` alone.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use concord_cli::shared::connection::ConnectionArgs;
use concord_cli::shared::failure::{EXIT_CODES, Failure};
use concord_cli::shared::program;

mod bench;
mod demo;
mod eval;
mod panel;
mod python;

/// concord-lab: try Concord with a sample panel of agents, and measure it.
#[derive(Debug, Parser)]
#[command(name = "concord-lab", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Watch the sample panel review one contract; see scripts/demo.
    Demo(demo::DemoArgs),
    /// Have the sample panel of five agents review contracts.
    #[command(subcommand)]
    Panel(panel::PanelVerb),
    /// Measure how well Concord judges, on messages of which the truth is known.
    #[command(subcommand)]
    Eval(eval::EvalVerb),
    /// Measure steps, whole cases, latency and memory beside the raw broker.
    Bench(bench::BenchArgs),
    /// One agent of a measurement: `bench` starts it.
    #[command(hide = true)]
    BenchAgent(bench::AgentArgs),
}

fn main() -> ExitCode {
    let Arguments { connection, verb } = Arguments::parse();
    program::run(run(connection, verb))
}

/// Runs the verb; the exit code.
async fn run(connection: ConnectionArgs, verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Demo(args) => demo::run(args).await,
        Verb::Panel(verb) => panel::run(&connection, verb).await,
        Verb::Eval(verb) => eval::run(&verb),
        Verb::Bench(args) => bench::run(args).await,
        Verb::BenchAgent(args) => bench::run_agent(args).await,
    }
}
