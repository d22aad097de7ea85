//! `concord impact show`: what changed decisions do to the analyses of a case.

use std::collections::BTreeSet;

use clap::Args;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::impact::rerun::plan_now;
use concord_domain::aggregates::impact::{ImpactMachine, all_standings, reports};
use concord_events::ImpactAssessed;
use concord_wire::payload::{AnalysisImpact, ChangedAssumption, Figure};
use concord_wire::{CaseId, Timestamp, Token};
use serde::Serialize;

use super::runs;
use crate::shared::args::{JsonArg, case_id};
use crate::shared::case_file;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, one_line, styled};

/// At most so many characters of a name or value stand in a line.
const SHOWN: usize = 40;

/// The same of a reason.
const REASON: usize = 240;

/// Arguments of `concord impact show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each report says what has changed, which analyses that affects, directly or not, what is
estimated to become of them, and which must be done again. Below are the runs in which that
was done: who asked for each, what came of each analysis, and why one was not done.

Examples:
  concord impact show c-42
  concord impact show c-42 --last --json | jq '.[0].report.high_impact_count'
  concord impact show c-42 --runs --json

The JSON is that of the reports, and with --runs that of the runs.")]
pub(crate) struct ShowArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// Only the last report.
    #[arg(long)]
    last: bool,
    /// Only the runs in which analyses were done again.
    #[arg(long, conflicts_with = "last")]
    runs: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// A report with its time.
#[derive(Debug, Serialize)]
struct Shown {
    at: Timestamp,
    #[serde(flatten)]
    assessed: ImpactAssessed,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let (analyses, events) = source
        .aggregate::<ImpactMachine>(&args.case.token())
        .await?;
    if events.is_empty() {
        case_file::existing(&broker, &args.case).await?;
    }
    let runs = runs::runs(&events);
    if args.runs {
        args.json.print(runs.as_slice(), |runs| match runs {
            [] => "Nothing was done again: no run has begun.\n".to_owned(),
            some => runs::text(some),
        })?;
        return Ok(0);
    }
    let below = runs::text(&runs);
    let reports = reports(events).into_iter();
    let mut reports: Vec<Shown> = reports
        .map(|(at, assessed)| Shown { at, assessed })
        .collect();
    if args.last {
        reports.drain(..reports.len().saturating_sub(1));
    }
    let (case, _) = source.aggregate::<CaseMachine>(&args.case.token()).await?;
    let plan = plan_now(&analyses.graph, &all_standings(&case, &analyses.graph));
    let due: BTreeSet<Token> = plan
        .required
        .into_iter()
        .map(|step| step.analysis_id)
        .collect();
    // What the plan has no room for may be any of them.
    let due = (plan.required_omitted == 0).then_some(due);
    let text = |shown: &Shown| text(shown, due.as_ref());
    args.json.print(&reports, |reports| {
        let reports = match reports.as_slice() {
            [] => "No decision has changed on which an analysis rests.\n".to_owned(),
            some => some.iter().map(text).collect::<Vec<_>>().join("\n"),
        };
        match below.as_str() {
            "" => reports,
            below => format!("{reports}\n{below}"),
        }
    })?;
    Ok(0)
}

/// A report as a reader sees it. `due` are the analyses that must be done again as of now, where all of them are known.
fn text(shown: &Shown, due: Option<&BTreeSet<Token>>) -> String {
    let ImpactAssessed { report, by, .. } = &shown.assessed;
    let by = by.as_ref().map(|by| format!(", decided by {by}"));
    let mut lines = format!(
        "{} {}{}\n{} affected, {} to be done again in {} min{}\n",
        output::ago(shown.at),
        styled(NAMED, changed(&report.changed_assumption)),
        by.unwrap_or_default(),
        report.affected_count,
        report.high_impact_count,
        report.total_rerun_time,
        done_since(&report.impacts, due),
    );
    let mut table = Table::new([
        "ANALYSIS", "FIGURE", "NOW", "ESTIMATE", "CHANGE", "SURE", "AGAIN",
    ]);
    for one in &report.impacts {
        table.row([
            Cell::text(&one.analysis_id).with(NAMED),
            Cell::text(one_line(one.metric.as_deref().unwrap_or("-"), SHOWN)),
            Cell::text(figure(one.old_value.as_ref())),
            Cell::text(figure(one.estimated_new_value.as_ref())),
            Cell::text(change(one)),
            Cell::text(sure(one)),
            Cell::text(again(one, due)),
        ]);
    }
    lines.push_str(&table.to_string());
    lines.extend(report.impacts.iter().filter_map(without_estimate));
    if report.impacts_omitted > 0 {
        lines.push_str(&format!("and {} more\n", report.impacts_omitted));
    }
    lines
}

fn changed(changed: &ChangedAssumption) -> String {
    let part = changed.metric.as_ref();
    let part = part.map(|part| format!(" {}", one_line(part, SHOWN)));
    format!(
        "{} {}{}: {} is {}",
        changed.kind.as_str(),
        one_line(&changed.id, SHOWN),
        part.unwrap_or_default(),
        figure(changed.old_value.as_ref()),
        figure(changed.new_value.as_ref())
    )
}

/// A figure as a reader sees it: a number to six digits.
fn figure(figure: Option<&Figure>) -> String {
    match figure {
        None => "?".to_owned(),
        Some(Figure::Number(number)) => format!("{}", (number * 1e6).round() / 1e6),
        Some(Figure::Text(text)) => one_line(text, SHOWN),
    }
}

fn change(one: &AnalysisImpact) -> String {
    let delta = one.delta.map(|delta| format!("{:.0} %", delta * 100.0));
    delta.unwrap_or_else(|| "unknown".to_owned())
}

/// How sure the estimate is, where there is one. An older report has 1 where there is none.
fn sure(one: &AnalysisImpact) -> String {
    match &one.estimated_new_value {
        Some(_) => format!("{:.2}", one.confidence),
        None => "-".to_owned(),
    }
}

/// The figures of which there is no estimate beside the one that is shown, and why there is none.
fn without_estimate(one: &AnalysisImpact) -> Option<String> {
    let of = match one.unknown.as_slice() {
        [] => None,
        some => Some(format!(" of {}", one_line(&some.join(", "), REASON))),
    };
    let why = one.reason.as_ref();
    let why = why.map(|why| format!(", {}", one_line(why, REASON)));
    let line = [&of, &why]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect::<String>();
    (!line.is_empty()).then(|| format!("{}: no estimate{line}\n", one.analysis_id))
}

/// Whether it must be done again by the report, and whether that is so still.
fn again(one: &AnalysisImpact, due: Option<&BTreeSet<Token>>) -> String {
    let is_due = due.is_none_or(|due| due.contains(&one.analysis_id));
    match (one.requires_rerun, is_due) {
        (true, true) => format!("yes, {} min", one.rerun_minutes),
        (true, false) => "not any more".to_owned(),
        (false, _) => "no".to_owned(),
    }
}

/// How many that had to be done again by the report need not be any more; empty where that is none.
fn done_since(impacts: &[AnalysisImpact], due: Option<&BTreeSet<Token>>) -> String {
    let is_done = |one: &&AnalysisImpact| {
        one.requires_rerun && due.is_some_and(|due| !due.contains(&one.analysis_id))
    };
    match impacts.iter().filter(is_done).count() {
        0 => String::new(),
        done => format!("; {done} of them not any more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_a_table_with_what_has_changed_above() {
        let report = json!({
            "changed_assumption": { "kind": "assumption", "id": "operating_margin", "old_value": 25, "new_value": 28 },
            "affected_count": 2, "high_impact_count": 1, "total_rerun_time": 5,
            "impacts": [
                {
                    "analysis_id": "dcf", "type": "valuation", "metric": "target_price", "old_value": 85, "delta": 0.30000000000000004,
                    "estimated_new_value": 110.500_000_000_000_01, "magnitude": 3.0, "basis": "sensitivity", "confidence": 0.7,
                    "requires_rerun": true, "rerun_minutes": 5, "unknown": ["rating", "outlook"],
                },
                {
                    "analysis_id": "memo", "type": "text", "basis": "none", "confidence": 0.7, "requires_rerun": false, "rerun_minutes": 0,
                },
            ],
        });
        let assessed =
            json!({ "case_id": "c-1", "by": "eva", "changed": [], "report": report, "told": [] });
        let shown = Shown {
            at: Timestamp::from_unix_millis(0),
            assessed: serde_json::from_value(assessed).unwrap(),
        };
        let plain = |due: &[&'static str]| {
            let due = due.iter().map(|name| Token::fixed(name)).collect();
            anstream::adapter::strip_str(&text(&shown, Some(&due))).to_string()
        };
        let done: Vec<String> = plain(&[]).lines().map(str::to_owned).collect();
        assert!(
            done[1].ends_with("1 to be done again in 5 min; 1 of them not any more")
                && done[3].contains("not any more"),
            "{done:?}"
        );
        let text = plain(&["dcf"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("assumption operating_margin: 25 is 28, decided by eva"),
            "{text}"
        );
        assert_eq!(lines[1], "2 affected, 1 to be done again in 5 min");
        assert!(
            lines[3].contains("110.5")
                && lines[3].contains("30 %")
                && lines[3].contains("yes, 5 min"),
            "{text}"
        );
        assert!(
            lines[4].contains("unknown") && !lines[4].contains("0.70"),
            "{text}"
        );
        assert_eq!(lines[5..], ["dcf: no estimate of rating, outlook"]);
    }
}
