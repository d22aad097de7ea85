//! `concord person`: people, and agents with a role, and what they may do.

use clap::{Args, Subcommand};
use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::Service;
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, role, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};

mod register;
mod show;

use register::RegisterArgs;

/// The verbs of `concord person`.
#[derive(Debug, Subcommand)]
pub(crate) enum PersonVerb {
    /// Register somebody and what they may do, or change that.
    Register(Box<RegisterArgs>),
    /// List everybody who is registered.
    List(ListArgs),
    /// Show one of them.
    Show(ShowArgs),
    /// Let somebody do nothing until further notice; the debates that an arbiter has wait for others.
    Suspend(SuspendArgs),
    /// Let somebody who was suspended act again.
    Resume(ResumeArgs),
}

/// Arguments of `concord person suspend`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord person suspend eva --why \"on leave until June\"")]
pub(crate) struct SuspendArgs {
    /// The person.
    #[arg(value_parser = agent_id)]
    name: AgentId,
    /// The reason; whoever is refused because of it is told.
    #[arg(long, value_parser = words)]
    why: String,
    #[command(flatten)]
    by: OperatorArgs,
}

/// Arguments of `concord person resume`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord person resume eva")]
pub(crate) struct ResumeArgs {
    /// The person.
    #[arg(value_parser = agent_id)]
    name: AgentId,
    /// The reason.
    #[arg(long, default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    by: OperatorArgs,
}

/// Arguments of `concord person list`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  concord person list\n  concord person list --role reviewer --json"
)]
pub(crate) struct ListArgs {
    /// Only those with this role.
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord person show`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord person show eva --json")]
pub(crate) struct ShowArgs {
    /// The person.
    #[arg(value_parser = agent_id)]
    name: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

/// The operator who gives a command, and how its result is printed.
#[derive(Debug, Args)]
struct OperatorArgs {
    /// The operator who gives the command [default: operator, or the name given with --as].
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: Option<AgentId>,
    #[command(flatten)]
    json: JsonArg,
}

impl OperatorArgs {
    fn by(&self, connection: &ConnectionArgs) -> AgentId {
        let named = self.by.as_ref().or(connection.caller.as_ref());
        named.cloned().unwrap_or_else(|| AgentId::fixed("operator"))
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: PersonVerb) -> Result<u8, Failure> {
    match verb {
        PersonVerb::Register(args) => register::register(connection, &args).await,
        PersonVerb::List(args) => show::list(connection, args.role, args.json).await,
        PersonVerb::Show(args) => show::one(connection, &args.name, args.json).await,
        PersonVerb::Suspend(SuspendArgs { name, why, by }) => {
            order(
                connection,
                ("suspend_person", "is suspended"),
                (&name, &why),
                &by,
            )
            .await
        }
        PersonVerb::Resume(ResumeArgs { name, why, by }) => {
            order(
                connection,
                ("resume_person", "may act again"),
                (&name, &why),
                &by,
            )
            .await
        }
    }
}

/// Suspends or resumes somebody, and prints what came of it.
async fn order(
    connection: &ConnectionArgs,
    (verb, text): (&'static str, &str),
    (name, why): (&AgentId, &str),
    args: &OperatorArgs,
) -> Result<u8, Failure> {
    let by = args.by(connection);
    let broker = connection.connect().await?;
    let request = json!({ "name": name, "by": by, "why": why });
    let done = command(&broker, Service::Coordinator, verb, &request).await?;
    let already = if done.event.is_some() { "" } else { " already" };
    args.json.print(
        &json!({ "name": name, "by": by, "why": why, "done": done }),
        |_| format!("{} {text}{already}\n", styled(NAMED, name)),
    )?;
    Ok(0)
}
