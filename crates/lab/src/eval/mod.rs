//! `concord-lab eval`: how well Concord judges, measured on messages of which the truth is known.

use clap::Subcommand;

use concord_cli::shared::failure::Failure;

mod wake;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalVerb {
    /// Whom messages wake: how often rightly, how often wrongly, and how fast that is decided.
    Wake(wake::WakeArgs),
}

/// Runs the verb.
pub(crate) fn run(verb: &EvalVerb) -> Result<u8, Failure> {
    match verb {
        EvalVerb::Wake(args) => wake::run(args),
    }
}
