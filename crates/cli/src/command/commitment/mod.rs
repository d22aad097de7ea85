//! `concord commitment`: who has committed to what.

use clap::{Args, Subcommand};
use concord_wire::CaseId;
use concord_wire::payload::Lease;
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared::args::{JsonArg, case_id};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table, one_line};

/// The verbs of `concord commitment`.
#[derive(Debug, Subcommand)]
pub(crate) enum CommitmentVerb {
    /// List the commitments of a case that stand, or who has a resource outside cases.
    List(ListArgs),
}

/// Arguments of `concord commitment list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Agents commit with a message of the type commitment to the coordinator. It ends when it is
released, when its lease passes, or when its holder or its case is gone. The numbers are the
coordinator's settings service.commitment.lease_ms, lease_max_ms and per_agent.

Examples:
  concord commitment list c-42
  concord commitment list --resource build --json")]
pub(crate) struct ListArgs {
    /// The case; none for a resource outside cases.
    #[arg(value_parser = case_id, required_unless_present = "resource")]
    case: Option<CaseId>,
    /// One resource.
    #[arg(long)]
    resource: Option<String>,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    leases: Vec<Lease>,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: CommitmentVerb) -> Result<u8, Failure> {
    let CommitmentVerb::List(args) = verb;
    let broker = connection.connect().await?;
    let mut request = serde_json::Map::new();
    if let Some(case) = &args.case {
        request.insert("case_id".to_owned(), json!(case));
    }
    if let Some(resource) = &args.resource {
        request.insert("resource".to_owned(), json!(resource));
    }
    let shown: Shown = ask(
        &broker,
        Service::Coordinator,
        "commitments",
        &json!(request),
    )
    .await?;
    args.json.print(&shown, text)?;
    Ok(0)
}

fn text(shown: &Shown) -> String {
    if shown.leases.is_empty() {
        return "Nobody has committed to it.\n".to_owned();
    }
    let mut table = Table::new(["RESOURCE", "HOLDER", "TERM", "UNTIL", "WHY"]);
    for lease in &shown.leases {
        table.row([
            Cell::text(one_line(&lease.resource, 60)).with(NAMED),
            Cell::text(&lease.holder),
            Cell::text(lease.term),
            Cell::text(lease.until),
            Cell::text(one_line(&lease.why, 60)),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_what_stands_with_its_end() {
        let shown: Shown = serde_json::from_value(json!({ "leases": [
            { "resource": "task/t-7", "holder": "ann", "term": 4, "until": "2026-11-21T20:00:00Z" },
        ] }))
        .unwrap();
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let line = text.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..3], ["task/t-7", "ann", "4"]);
    }
}
