//! `concord debate`: shows debates, and gives operators control of their deadlines.

use clap::Subcommand;

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod control;
mod reassigned;
mod show;

/// The verbs of `concord debate`.
#[derive(Debug, Subcommand)]
pub(crate) enum DebateVerb {
    /// Show a debate: its level, what it waits for, and what has happened.
    Show(show::ShowArgs),
    /// Hold the deadlines of a debate, until they are resumed.
    Hold(control::ControlArgs),
    /// Let held deadlines run again, later by the time they were held.
    Resume(control::ControlArgs),
    /// Give a debate more time: all its deadlines are later.
    Extend(control::ExtendArgs),
    /// End a debate without a result.
    Cancel(control::CancelArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: DebateVerb) -> Result<u8, Failure> {
    match verb {
        DebateVerb::Show(args) => show::run(connection, &args).await,
        DebateVerb::Hold(args) => control::hold(connection, &args).await,
        DebateVerb::Resume(args) => control::resume(connection, &args).await,
        DebateVerb::Extend(args) => control::extend(connection, &args).await,
        DebateVerb::Cancel(args) => control::cancel(connection, &args).await,
    }
}
