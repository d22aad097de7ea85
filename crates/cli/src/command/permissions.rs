//! `concord permissions`: the permissions of the NATS user of an agent or person.

use clap::Args;
use concord_domain::aggregates::person::verbs_of;
use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::{Permissions, SubjectSpace};
use serde::Serialize;

use crate::shared::args::{JsonArg, agent_id, role};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;

mod accounts;

use accounts::Accounts;

/// Arguments of `concord permissions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord permissions pricing-agent >> nats-users.conf
  concord permissions --role reviewer --role arbiter eva >> nats-users.conf
  concord permissions --accounts pricing-agent ben --person eva=reviewer,arbiter > nats-accounts.conf

It prints one user of the broker's configuration, to be put into its authorization block or an account, with a password,
nkey or whatever the broker is to know the user by. With such a user nobody else can speak as that agent or person, and so
nobody else can rule in its place. No broker is asked. The services, and the operators who use this command, need a user of
their own without these limits.

With --role it prints the user of a person with that role: it asks the services under its own name (concord --as NAME) for what
the role may ask for, and sends the messages that the role is for. It reads no streams: the services give it what the role may
read.

With --accounts it prints the accounts of the broker's configuration: Concord's, for the services and operators, and one for
each agent or person, which shares with it what the agent says and hears, and nothing else. Name all of them at once; include
the file beside a jetstream block and give each password as a variable. The broker does not check the reply subject of what a
user publishes: in a shared account an agent can have acknowledgements stored where they do not belong, which readers pass
over. In an account of its own it cannot, and any inbox is its own. JetStream stays in Concord's account: agents hear by plain
subscriptions, and durable consumers, $JS.API and the object store of payloads over 1 MB do not work for them, as with one
shared account. Each pair of agents takes eight lines, since agents hear each other from account to account.")]
pub(crate) struct PermissionsArgs {
    /// The agent or person; with --accounts all of them.
    #[arg(value_parser = agent_id, required_unless_present = "people", value_name = "AGENT")]
    agents: Vec<AgentId>,
    /// Print accounts, each agent or person in one of its own.
    #[arg(long, conflicts_with = "roles")]
    accounts: bool,
    /// Print the user of a person with this role; may be repeated.
    #[arg(long = "role", value_name = "ROLE", value_parser = role)]
    roles: Vec<Role>,
    /// With --accounts: a person and the roles, parted by commas; may be repeated.
    #[arg(long = "person", value_name = "NAME=ROLE", requires = "accounts", value_parser = person)]
    people: Vec<Speaker>,
    #[command(flatten)]
    json: JsonArg,
}

/// Somebody who speaks: an agent, or a person with roles.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Speaker {
    name: AgentId,
    /// None for an agent.
    roles: Vec<Role>,
}

/// Reads a person with roles from the command line.
fn person(text: &str) -> Result<Speaker, String> {
    let (name, roles) = text
        .split_once('=')
        .ok_or("a person is named with roles, for example eva=reviewer,arbiter")?;
    let roles: Result<Vec<Role>, String> = roles.split(',').map(role).collect();
    Ok(Speaker {
        name: agent_id(name)?,
        roles: roles?,
    })
}

impl Speaker {
    fn agent(name: &AgentId) -> Self {
        Self {
            name: name.clone(),
            roles: Vec::new(),
        }
    }

    /// What the user may publish.
    fn publish(&self, space: &SubjectSpace) -> Vec<String> {
        match self.roles.as_slice() {
            [] => space.publish_subjects(&self.name),
            roles => space.publish_subjects_of_roles(&self.name, roles, verbs_of(roles).as_deref()),
        }
    }

    /// What the user may do in the account of everybody.
    fn permissions(&self, space: &SubjectSpace) -> Permissions {
        Permissions {
            publish: self.publish(space),
            ..space.permissions(&self.name)
        }
    }

    /// What the user may do in an account of its own.
    fn permissions_in_own_account(&self, space: &SubjectSpace) -> Permissions {
        Permissions {
            publish: self.publish(space),
            ..space.permissions_in_own_account(&self.name)
        }
    }
}

/// A user and its permissions.
#[derive(Debug, Serialize)]
struct User<'a> {
    user: &'a AgentId,
    permissions: Permissions,
    /// To be given to the user's client as the prefix of its inboxes.
    inbox_prefix: String,
}

pub(crate) fn run(connection: &ConnectionArgs, args: &PermissionsArgs) -> Result<u8, Failure> {
    let space = SubjectSpace::new(&connection.settings()?.storage.prefix);
    if args.accounts {
        let agents = args.agents.iter().map(Speaker::agent);
        let all: Vec<Speaker> = agents.chain(args.people.iter().cloned()).collect();
        let accounts = Accounts::new(&space, &all)?;
        match args.json.json {
            true => output::json(&accounts)?,
            false => output::print(&accounts.text())?,
        }
        return Ok(0);
    }
    let [agent] = args.agents.as_slice() else {
        return Err(Failure::usage(
            "it prints one user at a time; several have accounts of their own with --accounts",
        ));
    };
    let speaker = Speaker {
        name: agent.clone(),
        roles: args.roles.clone(),
    };
    let user = User {
        user: agent,
        permissions: speaker.permissions(&space),
        inbox_prefix: SubjectSpace::replies(agent),
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
    let User {
        user,
        permissions,
        inbox_prefix,
    } = user;
    format!(
        "# The client of {user} must use the inbox prefix {inbox_prefix}.\n\
         {{\n  user: \"{user}\"\n  permissions: {{\n    publish: [{}]\n    subscribe: [{}]\n  }}\n}}\n",
        quoted(&permissions.publish),
        quoted(&permissions.subscribe),
    )
}

/// Texts in quotation marks, as in a list of the broker's configuration.
fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    quoted.join(", ")
}
