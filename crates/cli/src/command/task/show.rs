//! `concord task show`: who was asked in a task, what they gave, and how it ended.

use clap::Args;
use concord_domain::aggregates::task::{Part, TaskMachine};
use concord_events::TaskOutcome;
use concord_wire::payload::OpenTask;
use concord_wire::{AgentId, Timestamp, Token};
use serde::Serialize;
use serde_json::Value;

use super::list::status_of;
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table, one_line, styled};

/// The most characters of a result or a reason that a line shows.
const SHOWN_MAX: usize = 120;

/// Arguments of `concord task show`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord task show t-42 --json")]
pub(crate) struct ShowArgs {
    /// The task.
    task: Token,
    #[command(flatten)]
    json: JsonArg,
}

/// A task as it is printed.
#[derive(Debug, Serialize)]
struct Shown {
    task_id: Token,
    status: &'static str,
    opened_by: AgentId,
    due: Timestamp,
    terms: OpenTask,
    parts: Vec<ShownPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<TaskOutcome>,
}

/// What one agent had to do with it.
#[derive(Debug, Serialize)]
struct ShownPart {
    agent: AgentId,
    stage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
}

impl ShownPart {
    fn new((agent, part): (&AgentId, &Part)) -> Self {
        Self {
            agent: agent.clone(),
            stage: format!("{:?}", part.stage).to_lowercase(),
            price: part.bid.as_ref().map(|(bid, _)| bid.price),
            result: part.result.clone(),
            why: part.why.clone(),
        }
    }
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    show(&source, &args.task, args.json).await?;
    Ok(0)
}

/// Prints a task. The exit code is 1 where it has ended without a result.
pub(super) async fn show(source: &EventSource, task: &Token, json: JsonArg) -> Result<u8, Failure> {
    let (state, _) = source.aggregate::<TaskMachine>(task).await?;
    let Some(opened) = state.opened else {
        return Err(Failure::failed(format!("task {task} was never opened")));
    };
    let shown = Shown {
        task_id: task.clone(),
        status: state.ended.as_ref().map_or("open", status_of),
        opened_by: opened.opened_by,
        due: opened.due,
        terms: opened.terms,
        parts: state.parts.iter().map(ShownPart::new).collect(),
        outcome: state.ended,
    };
    json.print(&shown, text)?;
    let has_none = shown.outcome.as_ref().is_some_and(|outcome| {
        matches!(
            outcome,
            TaskOutcome::Failed { .. } | TaskOutcome::Cancelled { .. }
        )
    });
    Ok(u8::from(has_none))
}

fn text(shown: &Shown) -> String {
    let mut text = format!(
        "task {}: {}, {}, opened by {}, due {}\n",
        styled(NAMED, &shown.task_id),
        shown.terms.strategy,
        shown.status,
        shown.opened_by,
        shown.due
    );
    let mut table = Table::new(["AGENT", "STAGE", "RESULT", "WHY"]);
    for part in &shown.parts {
        let result = part.result.as_ref().map(ToString::to_string);
        table.row([
            Cell::text(&part.agent).with(NAMED),
            Cell::text(&part.stage),
            Cell::text(one_line(&result.unwrap_or_default(), SHOWN_MAX)),
            Cell::text(one_line(&part.why, SHOWN_MAX)),
        ]);
    }
    text.push_str(&table.to_string());
    let end = match &shown.outcome {
        None => return text,
        Some(TaskOutcome::Completed {
            result, partial, ..
        }) => {
            let how = if *partial { "in part" } else { "whole" };
            format!(
                "result ({how}): {}",
                one_line(&result.to_string(), SHOWN_MAX)
            )
        }
        Some(TaskOutcome::Failed { code, why, .. }) => {
            format!("{code}: {}", one_line(why, SHOWN_MAX))
        }
        Some(TaskOutcome::Cancelled { by, why }) => {
            format!("cancelled by {by}: {}", one_line(why, SHOWN_MAX))
        }
    };
    text.push_str(&end);
    text.push('\n');
    text
}
