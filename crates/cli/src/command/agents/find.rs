//! `concord agents find`: who can do something.

use clap::Args;
use concord_wire::AgentId;
use concord_wire::payload::{Criteria, FindAgents, FoundAgent};
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};

use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table};

/// Arguments of `concord agents find`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord agents find --skill translation --available")]
pub(super) struct FindArgs {
    /// A skill; may be repeated, and one of them is enough.
    #[arg(long = "skill", value_name = "SKILL")]
    skills: Vec<String>,
    /// A domain; may be repeated, and one of them is enough.
    #[arg(long = "domain", value_name = "DOMAIN")]
    domains: Vec<String>,
    /// What is needed, in words.
    #[arg(long)]
    text: Option<String>,
    /// An agent by name; may be repeated.
    #[arg(long = "agent", value_name = "AGENT", value_parser = agent_id)]
    agents: Vec<AgentId>,
    /// Only those who are available.
    #[arg(long)]
    available: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    agents: Vec<FoundAgent>,
}

pub(super) async fn run(
    connection: &ConnectionArgs,
    args: FindArgs,
    json: bool,
) -> Result<u8, Failure> {
    let criteria = Criteria {
        agents: args.agents,
        skills: args.skills,
        domains: args.domains,
        text: args.text,
    };
    let asked = FindAgents {
        criteria,
        available: args.available,
    };
    let broker = connection.connect().await?;
    let found: Found = ask(&broker, Service::Coordinator, "find_agents", &asked).await?;
    let json = json || args.json.json;
    JsonArg { json }.print(&found, text)?;
    Ok(0)
}

fn text(found: &Found) -> String {
    if found.agents.is_empty() {
        return "Nobody fits.\n".to_owned();
    }
    let mut table = Table::new(["AGENT", "FITS", "STATUS", "CAPACITY"]);
    for one in &found.agents {
        let capacity = one.capacity.map(|capacity| capacity.to_string());
        table.row([
            Cell::text(&one.agent_id).with(NAMED),
            Cell::text(format!("{:.2}", one.score)),
            Cell::text(one.status),
            Cell::text(capacity.unwrap_or_else(|| "-".to_owned())),
        ]);
    }
    table.to_string()
}
