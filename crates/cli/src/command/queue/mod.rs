//! `concord queue`: debates that wait for a person, and people who have them.

use clap::{Args, Subcommand};
use concord_domain::aggregates::review_queue::{self, QueueState, ReviewQueueMachine};
use concord_wire::subject::Service;
use concord_wire::{AgentId, DebateId};
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, debate_id, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, styled};

mod background;
pub(crate) mod brief;
mod list;
mod next;

/// Arguments of `concord queue`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  concord queue
  concord queue --limit 0 --json
  concord queue next --expert eva"
)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    verb: Option<QueueVerb>,
    #[command(flatten)]
    list: list::ListArgs,
}

/// The verbs of `concord queue`.
#[derive(Debug, Subcommand)]
enum QueueVerb {
    /// Show the brief of the most urgent debate that an expert has, or of one that you name.
    Next(next::NextArgs),
    /// Give a debate to an expert of your choice.
    Reassign(ReassignArgs),
}

/// Arguments of `concord queue reassign`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord queue reassign d-4f1c --to eva --why \"ben is ill\"")]
struct ReassignArgs {
    /// The debate.
    #[arg(value_parser = debate_id)]
    debate: DebateId,
    /// The expert who shall have it.
    #[arg(long, value_name = "EXPERT", value_parser = agent_id)]
    to: AgentId,
    /// The reason.
    #[arg(long, value_parser = words)]
    why: String,
    /// The person who gives the command.
    #[arg(long, value_name = "PERSON", value_parser = agent_id, default_value = "operator")]
    by: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: QueueArgs) -> Result<u8, Failure> {
    match args.verb {
        None => list::run(connection, &args.list).await,
        Some(QueueVerb::Next(args)) => next::run(connection, &args).await,
        Some(QueueVerb::Reassign(args)) => reassign(connection, &args).await,
    }
}

/// The state of the review queue; it is empty before its first event.
pub(crate) async fn state(source: &EventSource) -> Result<QueueState, Failure> {
    let (state, _) = source
        .aggregate::<ReviewQueueMachine>(&review_queue::id())
        .await?;
    Ok(state)
}

async fn reassign(connection: &ConnectionArgs, args: &ReassignArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let ReassignArgs {
        debate,
        to,
        why,
        by,
        ..
    } = args;
    let request = json!({ "debate_id": debate, "to": to, "by": by, "why": why });
    let done = command(
        &broker,
        Service::DebateFacilitator,
        "reassign_debate",
        &request,
    )
    .await?;
    match args.json.json {
        true => output::json(
            &json!({ "reassigned": debate, "to": to, "by": by, "why": why, "done": done }),
        )?,
        false => output::print(&format!("{} has debate {debate} now\n", styled(NAMED, to)))?,
    }
    Ok(0)
}
