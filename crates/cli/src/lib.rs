//! The `concord` command: a local installation, cases, and everything an operator looks at. One module a verb.

use std::process::ExitCode;

use clap::Parser;

mod agents;
mod args;
mod bench;
mod case;
mod challenge;
mod check;
mod circumstances;
mod connection;
mod dead;
mod deadlines;
mod debate;
mod decisions;
mod demo;
mod doctor;
mod eval;
mod expert;
mod failure;
mod gate;
mod metrics;
mod outcome;
mod output;
mod panel;
mod permissions;
mod queue;
mod record;
mod replay;
mod rule;
mod send;
mod stream_reader;
mod up;
mod wake;

use args::{Arguments, Verb};
use failure::Failure;

/// The whole `main` of the command.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failure::failed(format!("the program could not be set up: {error}")).report();
        }
    };
    match runtime.block_on(run(arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

/// Runs the verb; the exit code.
async fn run(Arguments { connection, verb }: Arguments) -> Result<u8, Failure> {
    match verb {
        Verb::Up(args) => up::run(&connection, args).await,
        Verb::Case(verb) => case::run(&connection, verb).await,
        Verb::Debate(verb) => debate::run(&connection, verb).await,
        Verb::Expert(verb) => expert::run(&connection, verb).await,
        Verb::Queue(args) => queue::run(&connection, args).await,
        Verb::Rule(args) => rule::run(&connection, args).await,
        Verb::Permissions(args) => permissions::run(&connection, &args),
        Verb::Outcome(args) => outcome::run(&connection, args).await,
        Verb::Challenge(args) => challenge::run(&connection, &args).await,
        Verb::Gate(verb) => gate::run(&connection, verb).await,
        Verb::Decisions(verb) => decisions::run(&connection, verb).await,
        Verb::Agents(args) => agents::run(&connection, args).await,
        Verb::Wake(verb) => wake::run(&connection, verb).await,
        Verb::Metrics(args) => metrics::run(&connection, args).await,
        Verb::Deadlines(args) => deadlines::run(&connection, &args).await,
        Verb::Doctor(args) => doctor::run(&connection, &args).await,
        Verb::Dead(verb) => dead::run(&connection, verb).await,
        Verb::Record(verb) => record::run(&connection, verb).await,
        Verb::Replay(args) => replay::run(&connection, &args).await,
        Verb::Check(args) => check::run(&connection, &args).await,
        Verb::Bench(args) => bench::run(args).await,
        Verb::Eval(verb) => eval::run(&verb),
        Verb::Panel(verb) => panel::run(&connection, verb).await,
        Verb::Demo(args) => demo::run(args).await,
    }
}
