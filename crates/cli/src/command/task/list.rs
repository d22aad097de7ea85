//! `concord task list`: tasks, and how they ended.

use std::collections::BTreeMap;

use clap::Args;
use concord_events::{Aggregate, TaskEvent, TaskOutcome};
use concord_wire::{AgentId, Timestamp, Token};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table, ago};

/// Arguments of `concord task list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  concord task list\n  concord task list --open --json")]
pub(crate) struct ListArgs {
    /// Only tasks that have not ended.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// A task.
#[derive(Debug, Serialize)]
struct Row {
    task_id: Token,
    strategy: String,
    opened_by: AgentId,
    opened_at: Timestamp,
    /// `open`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    #[serde(skip)]
    sequence: u64,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let mut rows: BTreeMap<Token, Row> = BTreeMap::new();
    let query = EventQuery::of_kind(Aggregate::Task);
    source
        .for_each(&query, "reading tasks", |stored| {
            let record = event_of::<TaskEvent>(&stored)?;
            let id = record.meta.id.clone();
            if let TaskEvent::Opened(opened) = &record.event {
                let row = Row {
                    task_id: id.clone(),
                    strategy: opened.terms.strategy.clone(),
                    opened_by: opened.opened_by.clone(),
                    opened_at: record.meta.at,
                    status: "open",
                    sequence: record.sequence,
                };
                rows.insert(id.clone(), row);
            }
            if let (Some(row), Some(end)) = (rows.get_mut(&id), record.event.end()) {
                row.status = status_of(&end.outcome);
            }
            Ok(())
        })
        .await?;
    let rows = rows.into_values();
    let mut rows: Vec<Row> = rows
        .filter(|row| !args.open || row.status == "open")
        .collect();
    rows.sort_by_key(|row| row.sequence);
    args.json.print(rows.as_slice(), text)?;
    Ok(0)
}

pub(super) fn status_of(outcome: &TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Completed { .. } => "completed",
        TaskOutcome::Failed { .. } => "failed",
        TaskOutcome::Cancelled { .. } => "cancelled",
    }
}

fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "There are no tasks.\n".to_owned();
    }
    let mut table = Table::new(["TASK", "STRATEGY", "STATUS", "OPENED BY", "OPENED"]);
    for row in rows {
        table.row([
            Cell::text(&row.task_id).with(NAMED),
            Cell::text(&row.strategy),
            Cell::text(row.status),
            Cell::text(&row.opened_by),
            Cell::text(ago(row.opened_at)),
        ]);
    }
    table.to_string()
}
