//! `concord impact plan`: which analyses would be done again.

use clap::Args;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::impact::{all_standings, rerun::plan_now};
use concord_wire::CaseId;
use concord_wire::payload::{RerunPlan, RerunStrategy};

use super::analyses;
use crate::shared::args::{JsonArg, case_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table};

/// Arguments of `concord impact plan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything that rests on a value which does not stand any more is in the plan, whatever has
changed it. Nothing is done: see concord impact run.

Examples:
  concord impact plan c-42
  concord impact plan c-42 --json | jq .estimated_minutes")]
pub(crate) struct PlanArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &PlanArgs) -> Result<u8, Failure> {
    let state = analyses(connection, &args.case).await?;
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let (case, _) = source.aggregate::<CaseMachine>(&args.case.token()).await?;
    let plan = plan_now(&state.graph, &all_standings(&case, &state.graph));
    args.json.print(&plan, text)?;
    Ok(0)
}

/// A plan as a reader sees it.
pub(super) fn text(plan: &RerunPlan) -> String {
    let mut lines = if plan.required.is_empty() {
        "Nothing must be done again.\n".to_owned()
    } else {
        let strategy = match plan.strategy {
            RerunStrategy::Serial => "one after the other",
            RerunStrategy::Parallel => "at the same time where nothing waits",
        };
        let mut table = Table::new(["STEP", "ANALYSIS", "BY", "AFTER", "CHANGE", "MINUTES"]);
        for (place, step) in plan.required.iter().enumerate() {
            let after: Vec<String> = step.after.iter().map(|one| (one + 1).to_string()).collect();
            let change = step.magnitude.map(|one| format!("{one:.1} x threshold"));
            table.row([
                Cell::text(place + 1),
                Cell::text(&step.analysis_id).with(NAMED),
                Cell::text(&step.agent_id),
                Cell::text(after.join(", ")),
                Cell::text(change.unwrap_or_else(|| "unknown".to_owned())),
                Cell::text(step.rerun_minutes),
            ]);
        }
        format!("{table}{} min, {strategy}\n", plan.estimated_minutes)
    };
    if plan.required_omitted > 0 {
        lines.push_str(&format!(
            "{} more need a further run\n",
            plan.required_omitted
        ));
    }
    if !plan.optional.is_empty() {
        let names: Vec<String> = plan.optional.iter().map(ToString::to_string).collect();
        lines.push_str(&format!(
            "affected, and need not be done again: {}\n",
            names.join(", ")
        ));
    }
    if plan.optional_omitted > 0 {
        lines.push_str(&format!("and {} more\n", plan.optional_omitted));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_names_steps_from_one_and_what_they_wait_for() {
        let plan = json!({
            "required": [
                { "analysis_id": "dcf", "agent_id": "ann", "magnitude": 3.0, "rerun_minutes": 5 },
                { "analysis_id": "memo", "agent_id": "ben", "after": [0], "rerun_minutes": 10 },
            ],
            "optional": ["risk"], "strategy": "serial", "estimated_minutes": 15, "blocking": true,
        });
        let text = text(&serde_json::from_value(plan).unwrap());
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("1") && lines[1].contains("3.0 x threshold"),
            "{text}"
        );
        assert!(
            lines[2].contains("ben") && lines[2].contains("unknown"),
            "{text}"
        );
        assert_eq!(lines[3], "15 min, one after the other");
        assert_eq!(lines[4], "affected, and need not be done again: risk");
    }
}
