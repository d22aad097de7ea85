//! `concord case list`: the cases, the newest first.

use clap::Args;
use concord_domain::aggregates::case::{CaseState, Phase};
use concord_wire::{AgentId, CaseId, Timestamp};
use serde::Serialize;

use crate::command::case::show;
use crate::shared::args::JsonArg;
use crate::shared::case_file;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, FAINT, NAMED, Table, ago, one_line, styled};

/// Arguments of `concord case list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  concord case list\n  concord case list --limit 0 --json")]
pub(crate) struct ListArgs {
    /// At most so many cases; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    json: JsonArg,
}

/// One case in the list.
#[derive(Debug, Serialize)]
struct Row {
    case_id: CaseId,
    phase: Phase,
    opened_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Timestamp>,
    participants: Vec<AgentId>,
    findings: usize,
    /// Conflicts that are, or were, debated.
    debated: usize,
    /// Debates that have ended.
    settled: usize,
    /// Conflicts beyond the policy's limit.
    deferred: usize,
    title: String,
}

impl Row {
    fn new(case_id: CaseId, state: CaseState) -> Self {
        let (participants, title) = state
            .opened
            .map(|opened| (opened.participants.clone(), opened.task.title.clone()))
            .unwrap_or_default();
        Self {
            case_id,
            phase: state.phase,
            opened_at: state.opened_at,
            decided_at: state.decided_at,
            participants,
            findings: state.findings.len(),
            debated: state.debated.len(),
            settled: state.outcomes.len(),
            deferred: state.deferred.len(),
            title,
        }
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut ids = case_file::opened(&broker).await?;
    ids.reverse();
    let all = ids.len();
    ids.truncate(if args.limit == 0 { all } else { args.limit });
    let mut rows = Vec::new();
    for id in ids {
        rows.extend(
            case_file::state_of_several(&broker, &id)
                .await?
                .map(|state| Row::new(id, state)),
        );
    }
    if args.json.json {
        output::json(&rows)?;
        return Ok(0);
    }
    if rows.is_empty() {
        output::print("There are no cases; open one with: concord case open FILE\n")?;
        return Ok(0);
    }
    let mut text = table(&rows).to_string();
    if rows.len() < all {
        let note = format!("{} of {all} cases; --limit 0 lists all", rows.len());
        text.push_str(&format!("{}\n", styled(FAINT, note)));
    }
    output::print(&text)?;
    Ok(0)
}

fn table(rows: &[Row]) -> Table<7> {
    let mut table = Table::new([
        "CASE",
        "PHASE",
        "AGE",
        "AGENTS",
        "FINDINGS",
        "CONFLICTS",
        "TITLE",
    ]);
    for row in rows {
        let mut conflicts = format!("{}/{} settled", row.settled, row.debated);
        if row.deferred > 0 {
            conflicts.push_str(&format!(", {} deferred", row.deferred));
        }
        if row.debated == 0 {
            conflicts = if row.phase == Phase::Decided {
                "none".to_owned()
            } else {
                "-".to_owned()
            };
        }
        table.row([
            Cell::text(&row.case_id).with(NAMED),
            Cell::text(show::phase_name(row.phase)).with(show::phase_style(row.phase)),
            Cell::number(ago(row.opened_at)),
            Cell::number(row.participants.len()),
            Cell::number(row.findings),
            Cell::text(conflicts),
            Cell::text(one_line(&row.title, 50)),
        ]);
    }
    table
}
