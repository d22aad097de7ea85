//! `concord case add`: lets an agent into a case that is under way.

use clap::Args;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId};
use serde_json::{Value, json};

use crate::shared::args::{JsonArg, agent_id, case_id};
use crate::shared::case_file;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;

/// Arguments of `concord case add`.
#[derive(Debug, Args)]
#[command(after_help = "\
The agent is sent a session_briefing, and where findings are still collected the task, too.

Example: concord case add c-42 tax-expert --by eva")]
pub(crate) struct AddArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The agent that is to join.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The operator who lets it in.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    by: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &AddArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let AddArgs {
        case, agent, by, ..
    } = args;
    case_file::existing(&broker, case).await?;
    let order = json!({ "case_id": case, "agent_id": agent, "by": by });
    let added: Value = ask(&broker, Service::Coordinator, "add_participant", &order).await?;
    args.json.print(&added, |_| {
        format!("{agent} takes part in {case}, and is briefed\n")
    })?;
    Ok(0)
}
