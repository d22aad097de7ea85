//! `concord case context`: what an agent may see of a case's conversation.

use clap::Args;
use concord_wire::payload::Remembered;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, case_id};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, one_line};

/// At most so many characters of a message are shown.
const SENTENCE: usize = 80;

/// Arguments of `concord case context`.
#[derive(Debug, Args)]
#[command(after_help = "\
An agent sees what was said to all, to it or by it, and what has woken it; if it joined later, since its briefing.
It is given this as context when a message wakes it. The agent adapter answers.

Examples:
  concord case context c-42 --agent ann
  concord case context c-42 --agent ann --json | jq '.messages[].text'")]
pub(crate) struct ContextArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The agent.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    agent: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the agent adapter.
#[derive(Debug, Serialize, Deserialize)]
struct Window {
    case_id: CaseId,
    agent_id: AgentId,
    messages: Vec<Remembered>,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &ContextArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let asked = json!({ "case_id": args.case, "agent_id": args.agent });
    let window: Window = ask(&broker, Service::AgentAdapter, "context", &asked).await?;
    args.json.print(&window, text)?;
    Ok(0)
}

fn text(window: &Window) -> String {
    if window.messages.is_empty() {
        return format!("{} sees no message yet.\n", window.agent_id);
    }
    let mut table = Table::new(["SAID", "FROM", "TO", "TYPE", "TEXT"]);
    for one in &window.messages {
        table.row([
            Cell::text(output::ago(one.at)),
            Cell::text(&one.from).with(NAMED),
            Cell::text(one.to.as_str()),
            Cell::text(one_line(&one.message_type, 30)),
            Cell::text(one_line(&one.text, SENTENCE)),
        ]);
    }
    table.to_string()
}
