//! `concord quota`: what openers have, beside what each of them may have.

use clap::Args;
use concord_events::Quotas;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared::args::JsonArg;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, DOUBTFUL, NAMED, PLAIN, Table, ago};

/// Arguments of `concord quota`.
#[derive(Debug, Args)]
#[command(after_help = "\
A place is taken when a case is opened, and given back when it has ended for good: it was
cancelled, or nothing of it is left to review. The numbers are the coordinator's settings
service.quota.open_cases, service.quota.gates and service.quota.challenges. Operators have
no quota.

Examples:
  concord quota
  concord quota opal --json")]
pub(crate) struct QuotaArgs {
    /// One opener; everybody who has ever opened a case under a quota when left out.
    opener: Option<AgentId>,
    #[command(flatten)]
    json: JsonArg,
}

/// What one opener has.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    opener: AgentId,
    open_cases: u64,
    gates: u64,
    challenges: u64,
    #[serde(default)]
    open_tasks: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told_at: Option<Timestamp>,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    quotas: Quotas,
    openers: Vec<Row>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: QuotaArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = match &args.opener {
        Some(opener) => json!({ "opener": opener }),
        None => json!({}),
    };
    let shown: Shown = ask(&broker, Service::Coordinator, "quotas", &request).await?;
    args.json.print(&shown, text)?;
    Ok(0)
}

fn text(shown: &Shown) -> String {
    if shown.openers.is_empty() {
        return "Nobody has opened a case or a task under a quota.\n".to_owned();
    }
    let of = |held: u64, limit: u32| match limit {
        0 => Cell::text(held),
        limit => {
            let is_full = held >= u64::from(limit);
            Cell::text(format!("{held} of {limit}")).with(if is_full { DOUBTFUL } else { PLAIN })
        }
    };
    let mut table = Table::new([
        "OPENER",
        "OPEN CASES",
        "GATES",
        "CHALLENGES",
        "OPEN TASKS",
        "USED UP",
    ]);
    for row in &shown.openers {
        table.row([
            Cell::text(&row.opener).with(NAMED),
            of(row.open_cases, shown.quotas.open_cases),
            of(row.gates, shown.quotas.gates),
            of(row.challenges, shown.quotas.challenges),
            of(row.open_tasks, shown.quotas.open_tasks),
            Cell::text(row.told_at.map_or_else(|| "-".to_owned(), ago)),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stands_beside_the_quota_and_no_limit_is_no_number() {
        let shown: Shown = serde_json::from_value(json!({
            "quotas": { "open_cases": 2, "gates": 0, "challenges": 9, "open_tasks": 8 },
            "openers": [{ "opener": "opal", "open_cases": 2, "gates": 7, "challenges": 0, "open_tasks": 3 }],
        }))
        .unwrap();
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let line = text.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.join(" "), "opal 2 of 2 7 0 of 9 3 of 8 -");
    }
}
