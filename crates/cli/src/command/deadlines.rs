//! `concord deadlines`: the deadlines that the broker's scheduler holds.

use clap::Args;
use concord_events::Aggregate;
use concord_runtime::{Broker, service::clock};
use concord_wire::subject::Service;
use concord_wire::{Timestamp, Token};
use serde::{Deserialize, Serialize};

use crate::shared::args::JsonArg;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{self, BAD, Cell, NAMED, PLAIN, Table, span};

/// Arguments of `concord deadlines`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: concord deadlines\n\nAt most a thousand are listed, the earliest first."
)]
pub(crate) struct DeadlinesArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// A deadline that is armed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Armed {
    aggregate: Aggregate,
    id: Token,
    name: Token,
    due: Timestamp,
    /// Milliseconds since the deadline was due; 0 before that.
    #[serde(default)]
    pub(crate) overdue_ms: u64,
}

/// The deadlines that the timer has armed, the earliest first.
pub(crate) async fn armed(broker: &Broker) -> Result<Vec<Armed>, Failure> {
    let now = clock::now();
    let mut armed: Vec<Armed> = ask(
        broker,
        Service::EscalationTimer,
        "armed",
        &serde_json::Value::Null,
    )
    .await?;
    for deadline in &mut armed {
        deadline.overdue_ms = now.millis_since(deadline.due);
    }
    Ok(armed)
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &DeadlinesArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let armed = armed(&broker).await?;
    if args.json.json {
        output::json(&armed)?;
        return Ok(0);
    }
    if armed.is_empty() {
        output::print("No deadline is armed. What has just begun arms its own within seconds.\n")?;
        return Ok(0);
    }
    let mut table = Table::new(["DUE", "IN", "OF", "ID", "DEADLINE"]);
    for Armed {
        aggregate,
        id,
        name,
        due,
        overdue_ms,
    } in &armed
    {
        let (left, style) = match overdue_ms {
            0 => (span(due.millis_since(clock::now())), PLAIN),
            late => (format!("overdue by {}", span(*late)), BAD),
        };
        table.row([
            Cell::text(due),
            Cell::text(left).with(style),
            Cell::text(aggregate),
            Cell::text(id).with(NAMED),
            Cell::text(name),
        ]);
    }
    output::print(&table.to_string())?;
    Ok(0)
}
