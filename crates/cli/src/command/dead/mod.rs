//! `concord dead`: messages that could not be processed.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod letter;
mod list;
mod retry;
mod show;

pub(crate) use letter::{Letter, letters};

/// The verbs of `concord dead`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadVerb {
    /// List dead letters, the newest first.
    List(ListArgs),
    /// Show one: the original, and why it could not be processed.
    Show(ShowArgs),
    /// Send originals again, as after the cause was mended.
    Retry(RetryArgs),
}

/// Arguments of `concord dead list`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord dead list --json")]
pub(crate) struct ListArgs {
    /// Also those that were sent again.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord dead show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  concord dead show 7\n  concord dead show 7 --raw > original")]
pub(crate) struct ShowArgs {
    /// Its number in the list.
    sequence: u64,
    /// Write the original as it is, and nothing else.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord dead retry`.
#[derive(Debug, Args)]
#[group(id = "letters", required = true, multiple = false, args = ["sequence", "all"])]
#[command(after_help = "\
Examples:
  concord dead retry 7
  concord dead retry --all
  concord dead retry --all --reason invalid,late

`--all` leaves what was refused for what it is: it would be refused again, and its sender told twice. Whoever knows that it
is good now, as after an upgrade or with more rights, names the reason.

The original is published again on its own subject, with a header that says so. Of a notification the agent-adapter tries
again to deliver it, and answers whether it could. The letter stays, marked, so that the
record of what was refused is complete; `concord dead list` leaves it out.")]
pub(crate) struct RetryArgs {
    /// Its number in the list.
    sequence: Option<u64>,
    /// Every letter that was not sent again yet and whose message was not at fault: `exhausted` and `undeliverable`.
    #[arg(long)]
    all: bool,
    /// With --all: the letters with these reasons instead; can be given several times.
    #[arg(long = "reason", value_name = "REASON", value_delimiter = ',', conflicts_with = "sequence", value_parser = PossibleValuesParser::new(letter::reasons()))]
    reasons: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: DeadVerb) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    match verb {
        DeadVerb::List(args) => list::run(&broker, &args).await,
        DeadVerb::Show(args) => show::run(&broker, &args).await,
        DeadVerb::Retry(args) => retry::run(&broker, &args).await,
    }
}
