//! `concord record`: how often agents were right, and what follows from it.

use clap::Subcommand;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod show;
mod view;

/// What to do with track records.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordVerb {
    /// Explain an agent's credibility, factor by factor.
    Show(show::ShowArgs),
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, verb: RecordVerb) -> Result<u8, Failure> {
    match verb {
        RecordVerb::Show(args) => show::run(connection, &args).await,
    }
}
