//! `concord permissions`: what the NATS user of an agent or person may do.

use clap::Args;
use concord_protocol::AgentId;
use concord_protocol::subject::{Permissions, SubjectSpace};
use serde::Serialize;

use crate::args::{JsonArg, agent_id};
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::output;

/// Arguments of `concord permissions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord permissions eva >> nats-users.conf

It prints one user of the broker's configuration, to be put into its authorization block or an account, with a password,
nkey or whatever the broker is to know the user by. With such a user nobody else can speak as that agent or person, and so
nobody else can rule in its place. No broker is asked. The services, and the operators who use this command, need a user of
their own without these limits.")]
pub(crate) struct PermissionsArgs {
    /// The agent or person.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    #[command(flatten)]
    json: JsonArg,
}

/// A user and what it may do.
#[derive(Debug, Serialize)]
struct User<'a> {
    user: &'a AgentId,
    permissions: Permissions,
    /// To be given to the user's client as the prefix of its inboxes.
    inbox_prefix: String,
}

/// Runs the verb.
pub(crate) fn run(connection: &ConnectionArgs, args: &PermissionsArgs) -> Result<u8, Failure> {
    let space = SubjectSpace::new(&connection.settings()?.storage.prefix);
    let user = User {
        user: &args.agent,
        permissions: space.permissions(&args.agent),
        inbox_prefix: SubjectSpace::replies(&args.agent),
    };
    if args.json.json {
        output::json(&user)?;
    } else {
        output::print(&text(&user))?;
    }
    Ok(0)
}

/// The user in the form of the broker's configuration.
fn text(user: &User<'_>) -> String {
    let list = |subjects: &[String]| {
        let quoted: Vec<String> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
        quoted.join(", ")
    };
    let User { user, permissions, inbox_prefix } = user;
    format!(
        "# The client of {user} must use the inbox prefix {inbox_prefix}.\n\
         {{\n  user: \"{user}\"\n  permissions: {{\n    publish: [{}]\n    subscribe: [{}]\n  }}\n}}\n",
        list(&permissions.publish),
        list(&permissions.subscribe),
    )
}
