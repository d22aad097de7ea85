//! `concord expert`: people who rule, as the queue knows them.

use clap::{Args, Subcommand};

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;

mod list;

/// The verbs of `concord expert`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExpertVerb {
    /// List the people who rule, and the debates that they have.
    List(ListArgs),
}

/// Arguments of `concord expert list`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord expert list --json

Arbiters are registered with concord person register NAME --role arbiter.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: ExpertVerb) -> Result<u8, Failure> {
    match verb {
        ExpertVerb::List(args) => list::run(connection, args.json).await,
    }
}
