//! `concord agents`: who is hosted.

use clap::Args;
use concord_protocol::payload::Skill;
use concord_protocol::subject::Service;
use serde::{Deserialize, Serialize};

use crate::args::JsonArg;
use crate::connection::{ConnectionArgs, ask};
use crate::failure::Failure;
use crate::output::{self, BAD, Cell, DOUBTFUL, FAINT, GOOD, NAMED, Table, one_line, styled};

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
    skills: Vec<Skill>,
    #[serde(default)]
    domains: Vec<String>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    instances: usize,
    #[serde(default)]
    working: usize,
    #[serde(default)]
    waiting: usize,
    #[serde(default)]
    breaker: String,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

impl Hosted {
    /// How its circuit breaker stands, and until when it is not asked.
    fn stands(&self) -> Cell {
        let until = self.more.get("refuses_until").and_then(serde_json::Value::as_str);
        let text = until.map_or_else(|| self.breaker.clone(), |until| format!("{} until {until}", self.breaker));
        Cell::text(text).with(match self.breaker.as_str() {
            "closed" => GOOD,
            "half_open" => DOUBTFUL,
            _ => BAD,
        })
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
    let headings = ["AGENT", "KIND", "BREAKER", "WORKING", "WAITING", "DOMAINS", "SKILLS", "DESCRIPTION"];
    let mut table = Table::new(headings);
    for agent in &agents {
        let skills: Vec<&str> = agent.skills.iter().map(|skill| skill.name.as_str()).collect();
        table.row([
            Cell::text(&agent.agent_id).with(NAMED),
            Cell::text(&agent.kind),
            agent.stands(),
            Cell::text(format!("{} of {}", agent.working, agent.instances)),
            Cell::number(agent.waiting),
            Cell::text(agent.domains.join(", ")),
            Cell::text(one_line(&skills.join(", "), 40)),
            Cell::text(one_line(&agent.description, 60)),
        ]);
    }
    let note = styled(
        FAINT,
        "One replica of the adapter answers, for itself. Agents that speak NATS themselves are not listed here.",
    );
    output::print(&format!("{table}{note}\n"))?;
    Ok(0)
}
