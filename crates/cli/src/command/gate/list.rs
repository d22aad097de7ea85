//! `concord gate list`.

use clap::Args;
use concord_domain::aggregates::case::CaseState;
use concord_events::{CaseEvent, StoredEvent};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp};
use serde::Serialize;

use super::{load, requires_review};
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, DOUBTFUL, FAINT, GOOD, STRONG, Table, styled};

/// Arguments of `concord gate list`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord gate list c-42")]
pub(crate) struct ListArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    json: JsonArg,
}

/// The gates of a case.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    case_id: &'a CaseId,
    gates: Vec<Row<'a>>,
    /// Provisional decisions that require review at the gate ahead.
    requires_review: usize,
}

/// Where a case is with one gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Passed,
    /// The next one to be passed.
    Ahead,
    /// After the one ahead.
    Later,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    gate: &'a str,
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<Passed<'a>>,
}

/// How it was passed.
#[derive(Debug, Serialize)]
struct Passed<'a> {
    at: Timestamp,
    by: &'a AgentId,
    /// Provisional decisions with which it was passed unreviewed.
    #[serde(skip_serializing_if = "<[DebateId]>::is_empty")]
    unreviewed: &'a [DebateId],
}

/// Runs the verb.
pub(super) async fn run(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let (state, records) = load(&broker, &args.case).await?;
    let shown = shown(&args.case, &state, &records);
    match args.json.json {
        true => output::json(&shown)?,
        false => output::print(&text(&shown))?,
    }
    Ok(0)
}

fn shown<'a>(
    case_id: &'a CaseId,
    state: &'a CaseState,
    records: &'a [StoredEvent<CaseEvent>],
) -> Shown<'a> {
    let mut passed = records.iter().filter_map(|record| match &record.event {
        CaseEvent::GatePassed(passed) => Some(Passed {
            at: record.meta.at,
            by: &passed.heard.agent_id,
            unreviewed: &passed.unreviewed,
        }),
        _ => None,
    });
    let gates = state
        .opened
        .as_ref()
        .map(|opened| opened.gates.as_slice())
        .unwrap_or_default();
    let rows = gates.iter().enumerate().map(|(place, gate)| {
        let standing = match place.cmp(&state.gates_passed) {
            std::cmp::Ordering::Less => Standing::Passed,
            std::cmp::Ordering::Equal => Standing::Ahead,
            std::cmp::Ordering::Greater => Standing::Later,
        };
        // Gates are passed in their order, so the facts are in that of the gates.
        let passed = if standing == Standing::Passed {
            passed.next()
        } else {
            None
        };
        Row {
            gate,
            standing,
            passed,
        }
    });
    Shown {
        case_id,
        gates: rows.collect(),
        requires_review: state.unreviewed().count(),
    }
}

fn text(shown: &Shown<'_>) -> String {
    if shown.gates.is_empty() {
        return format!(
            "Case {} has no gates; they are named in `gates` when a case is opened.\n",
            shown.case_id
        );
    }
    let mut table = Table::new(["NO", "GATE", "", "BY", "AT", ""]);
    for (place, row) in shown.gates.iter().enumerate() {
        let (standing, style) = match row.standing {
            Standing::Passed => ("passed", GOOD),
            Standing::Ahead => ("ahead", STRONG),
            Standing::Later => ("later", FAINT),
        };
        let unreviewed = row
            .passed
            .as_ref()
            .map_or(0, |passed| passed.unreviewed.len());
        let note = match (row.standing, unreviewed) {
            (Standing::Ahead, _) if shown.requires_review > 0 => {
                requires_review(shown.requires_review)
            }
            (_, 0) => String::new(),
            (_, number) => format!("with {number} unreviewed"),
        };
        table.row([
            Cell::number(place + 1),
            Cell::text(row.gate),
            Cell::text(standing).with(style),
            Cell::text(
                row.passed
                    .as_ref()
                    .map_or(String::new(), |passed| passed.by.to_string()),
            ),
            Cell::text(
                row.passed
                    .as_ref()
                    .map_or(String::new(), |passed| passed.at.to_string()),
            ),
            Cell::text(note).with(DOUBTFUL),
        ]);
    }
    let all_passed = shown
        .gates
        .iter()
        .all(|row| row.standing == Standing::Passed);
    let note = if all_passed {
        format!("{}\n", styled(FAINT, "Every gate is passed."))
    } else {
        String::new()
    };
    format!("{table}{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_passed_ahead_or_later() {
        let (case, eva, debates) = (
            CaseId::new("c-1").unwrap(),
            AgentId::new("eva").unwrap(),
            [DebateId::new("d-1").unwrap()],
        );
        let row = |gate, standing| Row {
            gate,
            standing,
            passed: None,
        };
        let passed = Passed {
            at: Timestamp::from_unix_millis(0),
            by: &eva,
            unreviewed: &debates,
        };
        let gates = vec![
            Row {
                passed: Some(passed),
                ..row("model", Standing::Passed)
            },
            row("valuation", Standing::Ahead),
            row("report", Standing::Later),
        ];
        let shown = Shown {
            case_id: &case,
            gates,
            requires_review: 2,
        };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            " 1  model      passed  eva  1970-01-01T00:00:00.000Z  with 1 unreviewed"
        );
        assert!(
            lines[2].ends_with("2 provisional decisions require review")
                && lines[3].ends_with("later"),
            "{text}"
        );
        assert_eq!(
            serde_json::to_value(&shown).unwrap()["gates"][1]["standing"],
            "ahead"
        );
    }
}
