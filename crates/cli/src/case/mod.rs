//! `concord case`: opening, listing, showing and following cases.

use clap::Subcommand;
use concord_wire::CaseId;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;

mod cancel;
mod estimate;
mod event_line;
pub(crate) mod file;
mod list;
pub(crate) mod open;
mod show;
mod transcript;
mod view;
mod watch;

/// What to do with cases.
#[derive(Debug, Subcommand)]
pub(crate) enum CaseVerb {
    /// Open a case.
    Open(open::OpenArgs),
    /// Say what a case would cost, in messages, calls, tokens, money and time, before it runs.
    Estimate(estimate::EstimateArgs),
    /// List cases, the newest first.
    List(list::ListArgs),
    /// Show a case: findings, conflicts, rounds, votes, decision.
    Show(show::ShowArgs),
    /// Follow messages and facts as they come.
    Watch(watch::WatchArgs),
    /// Print everything that was said in a case.
    Transcript(transcript::TranscriptArgs),
    /// End a case and its debates without a decision.
    Cancel(cancel::CancelArgs),
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, verb: CaseVerb) -> Result<u8, Failure> {
    match verb {
        CaseVerb::Open(args) => open::run(connection, &args).await,
        CaseVerb::Estimate(args) => estimate::run(&args),
        CaseVerb::List(args) => list::run(connection, &args).await,
        CaseVerb::Show(args) => show::run(connection, &args).await,
        CaseVerb::Watch(args) => watch::run(connection, &args).await,
        CaseVerb::Transcript(args) => transcript::run(connection, &args).await,
        CaseVerb::Cancel(args) => cancel::run(connection, &args).await,
    }
}

/// Reads a case id from the command line.
pub(crate) fn case_id(text: &str) -> Result<CaseId, String> {
    CaseId::new(text).map_err(|error| error.to_string())
}

pub(crate) fn unknown(case: &CaseId) -> Failure {
    Failure::failed(format!(
        "there is no case {case}; `concord case list` shows those there are"
    ))
}
