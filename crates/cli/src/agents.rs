//! `concord agents`: who is hosted.

use clap::Args;
use concord_protocol::subject::Service;
use serde::{Deserialize, Serialize};

use crate::args::JsonArg;
use crate::connection::{ConnectionArgs, ask};
use crate::failure::Failure;
use crate::output::{self, BAD, Cell, FAINT, GOOD, NAMED, Table, one_line, styled};

/// Arguments of `concord agents`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord agents --json")]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// An agent as the adapter describes it. Fields that a newer adapter adds are kept.
#[derive(Debug, Serialize, Deserialize)]
struct Hosted {
    agent_id: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    skills: Vec<String>,
    #[serde(default)]
    domains: Vec<String>,
    #[serde(default)]
    running: serde_json::Value,
    #[serde(default)]
    instances: serde_json::Value,
    #[serde(default)]
    restarts: u64,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

impl Hosted {
    /// The adapter says how many programs run, or whether any does.
    fn runs(&self) -> bool {
        self.running.as_bool().unwrap_or_else(|| self.running.as_u64().is_some_and(|running| running > 0))
    }
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, args: &AgentsArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let agents: Vec<Hosted> = ask(&broker, Service::AgentAdapter, "agents", &serde_json::Value::Null).await?;
    if args.json.json {
        output::json(&agents)?;
        return Ok(0);
    }
    if agents.is_empty() {
        output::print(
            "The agent adapter hosts no agents; declare them in its settings under service.agents.\n\
             Agents that speak NATS themselves are not listed here.\n",
        )?;
        return Ok(0);
    }
    let mut table = Table::new(["AGENT", "RUNNING", "INSTANCES", "RESTARTS", "DOMAINS", "SKILLS", "DESCRIPTION"]);
    for agent in &agents {
        let running = if agent.runs() { GOOD } else { BAD };
        table.row([
            Cell::text(&agent.agent_id).with(NAMED),
            Cell::text(&agent.running).with(running),
            Cell::number(&agent.instances),
            Cell::number(agent.restarts),
            Cell::text(agent.domains.join(", ")),
            Cell::text(one_line(&agent.skills.join(", "), 40)),
            Cell::text(one_line(&agent.description, 60)),
        ]);
    }
    let note = styled(FAINT, "Agents that speak NATS themselves are not listed here.");
    output::print(&format!("{table}{note}\n"))?;
    Ok(0)
}
