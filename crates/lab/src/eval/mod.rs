//! `concord-lab eval`: how well Concord judges, measured on messages of which the truth is known.

use clap::Subcommand;

use concord_cli::shared::failure::Failure;

mod paraphrase;
mod wake;

/// The verbs of `concord-lab eval`.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalVerb {
    /// Measure how often clauses and advice in other words are taken for the same, and different ones are not.
    Paraphrase(paraphrase::ParaphraseArgs),
    /// Measure how often messages wake the right agents and wrong agents, and how fast that is decided.
    Wake(wake::WakeArgs),
}

pub(crate) fn run(verb: &EvalVerb) -> Result<u8, Failure> {
    match verb {
        EvalVerb::Paraphrase(args) => paraphrase::run(args),
        EvalVerb::Wake(args) => wake::run(args),
    }
}
