//! `concord agents`: the registered agents, their status, and which of them the agent adapter hosts.

use clap::{Args, Subcommand};
use concord_wire::payload::Card;
use concord_wire::subject::Service;
use concord_wire::{AgentId, Fault};
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::input::{malformed, name, read_input};
use crate::shared::output::{self, NAMED, styled};

mod find;
mod inbox;
mod list;
mod watch;

/// Arguments of `concord agents`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord agents                          everyone on the register, and who is hosted
  concord agents --watch                  and then what changes, until Ctrl-C
  concord agents find --skill translation
  concord agents register card.json
  concord agents register card.json --inbox
  concord agents deregister coder --why \"replaced by coder-2\"

With --inbox the broker keeps what is said to the agent while it is away, and the agent needs no rights for that beyond those that
`concord permissions` prints (docs/agents.md). It takes an operator; deregistering removes the inbox.

An agent registers itself by a request to coordinator with the action register_agent and its card as parameters.")]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    verb: Option<AgentsVerb>,
    /// Go on, and say who joins and whose status changes.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The verbs of `concord agents`.
#[derive(Debug, Subcommand)]
enum AgentsVerb {
    /// Find agents by skill, domain or words.
    Find(find::FindArgs),
    /// Enter an agent, or replace its card.
    Register(RegisterArgs),
    /// Take an agent off the register.
    Deregister(DeregisterArgs),
}

/// Arguments of `concord agents register`.
#[derive(Debug, Args)]
struct RegisterArgs {
    /// The card, as JSON; `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: std::path::PathBuf,
    /// Make a durable inbox for it, too.
    #[arg(long)]
    inbox: bool,
    /// The person who gives the command.
    #[arg(long, value_name = "PERSON", value_parser = agent_id, default_value = "operator")]
    by: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord agents deregister`.
#[derive(Debug, Args)]
struct DeregisterArgs {
    /// The agent.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The reason.
    #[arg(long, value_parser = words)]
    why: String,
    /// The person who gives the command.
    #[arg(long, value_name = "PERSON", value_parser = agent_id, default_value = "operator")]
    by: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: AgentsArgs) -> Result<u8, Failure> {
    match args.verb {
        None => list::run(connection, args.json.json, args.watch).await,
        Some(AgentsVerb::Find(verb)) => find::run(connection, verb, args.json.json).await,
        Some(AgentsVerb::Register(verb)) => register(connection, verb, args.json.json).await,
        Some(AgentsVerb::Deregister(verb)) => deregister(connection, verb, args.json.json).await,
    }
}

fn read(args: &RegisterArgs) -> Result<Card, Failure> {
    let bytes = read_input(&args.file, "concord agents register")?;
    let data = |fault: Fault| malformed(&name(&args.file), "is not a card", &fault);
    let card: Card = concord_wire::envelope::from_json(&bytes, "").map_err(data)?;
    card.check("").map_err(data)?;
    Ok(card)
}

async fn register(
    connection: &ConnectionArgs,
    args: RegisterArgs,
    json: bool,
) -> Result<u8, Failure> {
    let card = read(&args)?;
    let broker = connection.connect().await?;
    let request = json!({ "card": card, "by": args.by });
    let done = command(&broker, Service::Coordinator, "register_agent", &request).await?;
    if args.inbox {
        inbox::make(&broker, &card.agent_id).await?;
    }
    match json || args.json.json {
        true => output::json(
            &json!({ "registered": card, "by": args.by, "done": done, "inbox": args.inbox }),
        )?,
        false => {
            let skills = output::count(card.skills.len() as u64, "skill");
            output::print(&format!(
                "{} is registered: {skills}\n",
                styled(NAMED, &card.agent_id)
            ))?;
        }
    }
    Ok(0)
}

async fn deregister(
    connection: &ConnectionArgs,
    args: DeregisterArgs,
    json: bool,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({ "agent_id": args.agent, "by": args.by, "why": args.why });
    let done = command(&broker, Service::Coordinator, "deregister_agent", &request).await?;
    // People have no right to ask the broker for consumers.
    if connection.caller.is_none() {
        inbox::remove(&broker, &args.agent).await?;
    }
    match json || args.json.json {
        true => output::json(
            &json!({ "left": args.agent, "by": args.by, "why": args.why, "done": done }),
        )?,
        false => output::print(&format!(
            "{} is on the register no longer\n",
            styled(NAMED, &args.agent)
        ))?,
    }
    Ok(0)
}
