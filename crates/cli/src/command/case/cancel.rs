//! `concord case cancel`.

use clap::Args;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId};
use serde_json::json;

use crate::shared::args::case_id;
use crate::shared::args::{JsonArg, agent_id, words};
use crate::shared::case_file;
use crate::shared::case_file::unknown;
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, styled};

/// Arguments of `concord case cancel`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord case cancel c-42 --by eva --why \"the deal is off\"")]
pub(crate) struct CancelArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// Who says so.
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: AgentId,
    /// Why.
    #[arg(long, value_parser = words)]
    why: String,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, args: &CancelArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let CancelArgs {
        case,
        by,
        why,
        json,
    } = args;
    case_file::state(&broker, case)
        .await?
        .ok_or_else(|| unknown(case))?;
    let request = json!({ "case_id": case, "by": by, "why": why });
    let done = command(&broker, Service::Coordinator, "cancel_case", &request).await?;
    match json.json {
        true => output::json(&json!({ "cancelled": case, "by": by, "why": why, "done": done }))?,
        false => {
            let said = if done.event.is_some() {
                "is cancelled, with its debates"
            } else {
                "was cancelled already"
            };
            output::print(&format!("case {} {said}\n", styled(NAMED, case)))?;
        }
    }
    Ok(0)
}
