//! `concord record`: the track records of agents, and the credibility that follows from them.

use clap::Subcommand;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod import;
mod lessons;
mod months;
mod rows;
mod show;
mod view;

/// The verbs of `concord record`.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordVerb {
    /// Explain an agent's credibility, factor by factor.
    Show(show::ShowArgs),
    /// Find what was learned when the outcomes of debates became known.
    Lessons(lessons::LessonsArgs),
    /// Bring in what is known of agents from elsewhere.
    Import(import::ImportArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: RecordVerb) -> Result<u8, Failure> {
    match verb {
        RecordVerb::Show(args) => show::run(connection, &args).await,
        RecordVerb::Lessons(args) => lessons::run(connection, &args).await,
        RecordVerb::Import(args) => import::run(connection, &args).await,
    }
}
