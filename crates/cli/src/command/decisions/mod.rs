//! `concord decisions`: the decision log, entry by entry.

use clap::Subcommand;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod export;
mod list;
mod log;
mod show;

/// The verbs of `concord decisions`.
#[derive(Debug, Subcommand)]
pub(crate) enum DecisionsVerb {
    /// List the entries of one or all cases, and mark those that were changed.
    List(list::ListArgs),
    /// Show an entry.
    Show(show::ShowArgs),
    /// Write the entries as JSON Lines or CSV.
    Export(export::ExportArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: DecisionsVerb) -> Result<u8, Failure> {
    let connect = connection.connect();
    match verb {
        DecisionsVerb::List(args) => list::run(&connect.await?, &args).await,
        DecisionsVerb::Show(args) => show::run(&connect.await?, &args).await,
        DecisionsVerb::Export(args) => export::run(&connect.await?, &args).await,
    }
}
