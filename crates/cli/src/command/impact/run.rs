//! `concord impact run`: has analyses done again by the agents whose they are.

use clap::Args;
use concord_events::{Aggregate, ImpactEvent, RerunOutcome, RerunStepEnded};
use concord_wire::CaseId;
use concord_wire::payload::RerunPlan;
use concord_wire::subject::Service;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::plan;
use crate::shared::args::{JsonArg, case_id};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, NAMED, one_line, styled};

/// At most so many characters of a reason stand in a line.
const WHY: usize = 200;

/// Arguments of `concord impact run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each analysis becomes a task of the agent that has published it, which must be registered. A
result that has not changed stops there: what uses it alone is not done again. What an agent
does not do, and what uses that, is left for the next run.

Examples:
  concord impact run c-42
  concord impact run c-42 --wait

With --wait and --json, one object a line: the plan, and then each step.")]
pub(crate) struct RunArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// Show each step as it ends, until the run is over. Exit code 1 where one has failed.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    case_id: CaseId,
    run: u32,
    plan: RerunPlan,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &RunArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let query = EventQuery::of(Aggregate::Impact, &args.case.token());
    // Before the run begins, so that none of its events is missed.
    let mut arriving = std::pin::pin!(source.follow_new(&query).await?);
    let request = json!({ "case_id": args.case });
    let begun: Begun = ask(&broker, Service::Coordinator, "rerun_analyses", &request).await?;
    match args.json.json {
        // Of a run that is followed each line is an object.
        true if args.wait => output::json_line(&begun)?,
        _ => args.json.print(&begun, |begun| {
            format!("Run {} has begun.\n{}", begun.run, plan::text(&begun.plan))
        })?,
    }
    if !args.wait {
        return Ok(0);
    }
    let mut failed = false;
    loop {
        let Some(stored) = arriving.next().await else {
            return Err(Failure::unavailable(
                "the broker has gone; see `concord doctor`",
            ));
        };
        let ended = match event_of::<ImpactEvent>(&stored?)?.event {
            ImpactEvent::RerunStepEnded(ended) if ended.run == begun.run => *ended,
            _ => continue,
        };
        failed |= matches!(ended.outcome, RerunOutcome::Failed { .. });
        match args.json.json {
            true => output::json_line(&ended)?,
            false => output::print(&line(&ended))?,
        }
        if ended.next.end.is_some() {
            break;
        }
    }
    Ok(if failed { FOUND } else { 0 })
}

fn line(ended: &RerunStepEnded) -> String {
    let outcome = match &ended.outcome {
        RerunOutcome::Changed => "has other figures".to_owned(),
        RerunOutcome::Unchanged => "has the same figures".to_owned(),
        RerunOutcome::Failed { why } => format!("was not done: {}", one_line(why, WHY)),
    };
    let name = styled(NAMED, &ended.analysis_id);
    format!("{} of {}: {name} {outcome}\n", ended.done, ended.of)
}
