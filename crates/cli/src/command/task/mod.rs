//! `concord task`: tasks that strategies hand out to agents.

use clap::{Args, Subcommand};
use concord_wire::Token;
use concord_wire::payload::CancelTask;
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};

use crate::shared::args::{JsonArg, words};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, styled};

mod list;
mod open;
mod show;

/// The verbs of `concord task`.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskVerb {
    /// Open a task, for a strategy to hand out.
    Open(open::OpenArgs),
    /// List tasks, newest last.
    List(list::ListArgs),
    /// Show who was asked in a task, what they gave, and how it ended.
    Show(show::ShowArgs),
    /// End a task before its time.
    Cancel(CancelArgs),
}

/// Arguments of `concord task cancel`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord task cancel t-42 --why \"the deal is off\"")]
pub(crate) struct CancelArgs {
    /// The task.
    task: Token,
    /// The reason, for those who work on it.
    #[arg(long, value_parser = words)]
    why: String,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    task_id: Token,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: TaskVerb) -> Result<u8, Failure> {
    match verb {
        TaskVerb::Open(args) => open::run(connection, &args).await,
        TaskVerb::List(args) => list::run(connection, &args).await,
        TaskVerb::Show(args) => show::run(connection, &args).await,
        TaskVerb::Cancel(args) => cancel(connection, args).await,
    }
}

async fn cancel(connection: &ConnectionArgs, args: CancelArgs) -> Result<u8, Failure> {
    let request = CancelTask {
        task_id: args.task,
        why: args.why,
    };
    let broker = connection.connect().await?;
    let done: Done = ask(&broker, Service::Coordinator, "cancel_task", &request).await?;
    said(&done, args.json, "cancelled", "")
}

fn said(done: &Done, json: JsonArg, what: &str, more: &str) -> Result<u8, Failure> {
    match json.json {
        true => output::json(done)?,
        false => output::print(&format!(
            "{what} task {}{}\n",
            styled(NAMED, &done.task_id),
            more.replace("ID", done.task_id.as_str())
        ))?,
    }
    Ok(0)
}
