//! `concord case`: opening, listing, showing and following cases.

use clap::Subcommand;

use super::memory::insights::{self, InsightsArgs};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod add;
mod cancel;
mod compared;
mod context;
pub(crate) mod decided;
mod decision_versions;
mod estimate;
mod event_line;
mod list;
mod open;
mod package;
mod polled;
mod show;
mod thread_tree;
mod transcript;
mod view;
mod watch;

/// The verbs of `concord case`.
#[derive(Debug, Subcommand)]
pub(crate) enum CaseVerb {
    /// Open a case.
    Open(open::OpenArgs),
    /// Estimate what a case will cost before it runs: messages, calls, tokens, money and time.
    Estimate(estimate::EstimateArgs),
    /// List cases, the newest first.
    List(list::ListArgs),
    /// Show a case: findings, conflicts, rounds, votes, decision.
    Show(show::ShowArgs),
    /// Print the decision package of a case for a meeting.
    Package(package::PackageArgs),
    /// Show what everybody in a case was told of shared memory.
    Insights(InsightsArgs),
    /// Follow messages and events as they come.
    Watch(watch::WatchArgs),
    /// Print all messages of a case.
    Transcript(transcript::TranscriptArgs),
    /// Let an agent into a case that is under way; it is briefed.
    Add(add::AddArgs),
    /// Show what an agent may see of a case's conversation: its context window.
    Context(context::ContextArgs),
    /// End a case and its debates without a decision.
    Cancel(cancel::CancelArgs),
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: CaseVerb) -> Result<u8, Failure> {
    match verb {
        CaseVerb::Open(args) => open::run(connection, &args).await,
        CaseVerb::Estimate(args) => estimate::run(&args),
        CaseVerb::List(args) => list::run(connection, &args).await,
        CaseVerb::Show(args) => show::run(connection, &args).await,
        CaseVerb::Package(args) => package::run(connection, &args).await,
        CaseVerb::Insights(args) => insights::run(connection, &args).await,
        CaseVerb::Watch(args) => watch::run(connection, &args).await,
        CaseVerb::Transcript(args) => transcript::run(connection, &args).await,
        CaseVerb::Add(args) => add::run(connection, &args).await,
        CaseVerb::Context(args) => context::run(connection, &args).await,
        CaseVerb::Cancel(args) => cancel::run(connection, &args).await,
    }
}
