//! `concord task open`: opening a task, and waiting for its end.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use concord_domain::aggregates::task::TaskMachine;
use concord_events::{Aggregate, TaskEvent};
use concord_runtime::service::clock;
use concord_wire::Token;
use concord_wire::payload::OpenTask;
use concord_wire::subject::Service;
use futures::StreamExt;

use super::{Done, said, show};
use crate::shared::args::JsonArg;
use crate::shared::connection::{ConnectionArgs, ask_of_input};
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::input;

/// Arguments of `concord task open`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has the parameters of the request open_task (proto-schemas/request.schema.json), for example:
  {\"strategy\": \"round_robin\", \"task\": {\"type\": \"translation\", \"title\": \"Translate the annex.\"},
   \"criteria\": {\"skills\": [\"translation\"]}, \"deadline_ms\": 600000}

The strategies are round_robin, capability, contract_net, broadcast, consensus, poll, swarm and panel (docs/tasks.md).

Examples:
  concord task open task.json
  concord task open task.json --wait
  concord --as olga task open - --json < task.json")]
pub(crate) struct OpenArgs {
    /// The task as JSON; - for standard input.
    file: PathBuf,
    /// Wait for its end, and show it. The exit code is 1 where it has failed or was cancelled.
    #[arg(long)]
    wait: bool,
    /// Wait no longer than this many seconds [default: until the task is due, and a little more].
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    timeout: Option<u64>,
    #[command(flatten)]
    json: JsonArg,
}

/// The time that timer and services may take beyond the task's own.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(connection: &ConnectionArgs, args: &OpenArgs) -> Result<u8, Failure> {
    let bytes = input::read_input(&args.file, "concord task open")?;
    let terms: OpenTask = concord_wire::envelope::from_json(&bytes, "")
        .map_err(|fault| input::malformed(&input::name(&args.file), "is not a task", &fault))?;
    let broker = connection.connect().await?;
    let done: Done = ask_of_input(&broker, Service::Coordinator, "open_task", &terms).await?;
    if !args.wait {
        let more = "; see it with: concord task show ID";
        return said(&done, args.json, "opened", more);
    }
    let source = EventSource::new(&broker).await?;
    let limit = match args.timeout {
        Some(seconds) => Duration::from_secs(seconds),
        None => left(&source, &done.task_id).await? + PATIENCE,
    };
    ended(&source, &done.task_id, limit).await?;
    show::show(&source, &done.task_id, args.json).await
}

/// How long it is until the task is due.
async fn left(source: &EventSource, task: &Token) -> Result<Duration, Failure> {
    let (state, _) = source.aggregate::<TaskMachine>(task).await?;
    let opened = state
        .opened
        .ok_or_else(|| Failure::failed(format!("task {task} was opened and is not there")))?;
    let millis = opened.due.millis_since(clock::now());
    Ok(Duration::from_millis(millis))
}

/// Waits for the end of a task.
async fn ended(source: &EventSource, task: &Token, limit: Duration) -> Result<(), Failure> {
    let query = EventQuery::of(Aggregate::Task, task);
    let mut events = source.follow(&query).await?;
    let end = async {
        while let Some(stored) = events.next().await {
            if event_of::<TaskEvent>(&stored?)?.event.end().is_some() {
                return Ok(());
            }
        }
        Err(Failure::unavailable(
            "the broker has gone; see `concord doctor`",
        ))
    };
    tokio::time::timeout(limit, end).await.unwrap_or_else(|_| {
        Err(Failure::failed(format!(
            "task {task} has not ended after {} s; see `concord task show {task}` and `concord doctor`",
            limit.as_secs()
        )))
    })
}
