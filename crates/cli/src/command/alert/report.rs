//! `concord alert report`: what follows from an alert.

use clap::Args;
use concord_events::{Aggregate, AlertReported};
use concord_wire::payload::{REPORT_ALERT, ReportAlert};
use concord_wire::{AgentId, Token};
use serde_json::json;

use super::alert_id;
use crate::shared;
use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};
use crate::shared::put::{Put, refused};
use crate::shared::send::WaitArgs;

/// Arguments of `concord alert report`.
#[derive(Debug, Args)]
#[command(after_help = "\
After a change of regime a report is awaited of whoever has raised the alert, within the time that the rules say (docs/alerts.md).
Everybody who may alert can give it. Where it does not come in time, people are told.

Example:
  concord alert report ALERT \"Sector scores are in my memory under sectors, version 7\" --by macro_analyst")]
pub(crate) struct ReportArgs {
    /// The id of the alert.
    #[arg(value_parser = alert_id)]
    alert: Token,
    /// What there is to say by now, or where it stands.
    report: String,
    /// Who reports.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    by: AgentId,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ReportArgs) -> Result<u8, Failure> {
    let report = ReportAlert {
        alert: args.alert.clone(),
        report: args.report.clone(),
    };
    report.check("").map_err(refused)?;
    let put = Put {
        by: &args.by,
        case: None,
        action: REPORT_ALERT,
        parameters: json!(report),
        watched: (Aggregate::Alert, args.alert.clone()),
    };
    shared::put::put(connection, put, (args.wait, &args.json), |event| {
        let reported: AlertReported = event.read()?;
        let name = styled(NAMED, &args.alert);
        Ok(format!(
            "{name} has its report, by {}\n",
            reported.heard.agent_id
        ))
    })
    .await
}
