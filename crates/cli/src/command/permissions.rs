//! `concord permissions`: the permissions of the NATS user of an agent or person.

use clap::Args;
use concord_credentials::Holder;
use concord_events::topology::Layout;
use concord_wire::AgentId;
use concord_wire::payload::Role;
use concord_wire::subject::{Permissions, Service, SubjectSpace};
use serde::Serialize;

use crate::shared::args::{JsonArg, agent_id, role, service};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::speaker::{Speaker, inbox_prefix_of, permissions_of};

mod accounts;

use accounts::Accounts;

/// Arguments of `concord permissions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord permissions pricing-agent >> nats-users.conf
  concord permissions --role reviewer --role arbiter eva >> nats-users.conf
  concord permissions --service coordinator >> nats-users.conf
  concord permissions --accounts pricing-agent ben --person eva=reviewer,arbiter > nats-accounts.conf

It prints one user of the broker's configuration, to be put into its authorization block or an account, with a password,
nkey or whatever the broker is to know the user by. With such a user nobody else can speak as that agent or person, and so
nobody else can rule in its place. No broker is asked. The services, and the operators who use this command, need users of their
own: with --service it prints that of a service, which stores its own events and speaks under its own name; operators have no
limits. `concord credentials` issues signed credentials with the same permissions, for a broker in operator mode.

With --role it prints the user of a person with that role: it asks the services under its own name (concord --as NAME) for what
the role may ask for, and sends the messages that the role is for. It reads no streams: the services give it what the role may
read.

With --accounts it prints the accounts of the broker's configuration: Concord's, for the services and operators, and one for
each agent or person, which shares with it what the agent says and hears, and nothing else. Name all of them at once; include
the file beside a jetstream block and give each password as a variable. The broker does not check the reply subject of what a
user publishes: in a shared account an agent can have acknowledgements stored where they do not belong, which readers pass
over. In an account of its own it cannot, and any inbox is its own. JetStream stays in Concord's account: agents hear by plain
subscriptions there, and durable inboxes and the object store of payloads over 1 MB do not work for them. In one shared account
they have the durable inboxes that operators make (`concord agents register --inbox`). Each pair of agents takes eight lines, since agents hear each other from account to account.")]
pub(crate) struct PermissionsArgs {
    /// The agent or person; with --accounts all of them.
    #[arg(value_parser = agent_id, required_unless_present_any = ["people", "service"], value_name = "AGENT")]
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
    /// Print the user of a service of Concord.
    #[arg(long, value_name = "SERVICE", value_parser = service, conflicts_with_all = ["agents", "accounts", "roles", "people"])]
    service: Option<Service>,
    #[command(flatten)]
    json: JsonArg,
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

/// A user and its permissions.
#[derive(Debug, Serialize)]
struct User<'a> {
    user: &'a str,
    permissions: Permissions,
    /// To be given to the user's client as the prefix of its inboxes; none where any will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    inbox_prefix: Option<String>,
}

pub(crate) fn run(connection: &ConnectionArgs, args: &PermissionsArgs) -> Result<u8, Failure> {
    let settings = connection.settings()?;
    let space = SubjectSpace::new(&settings.storage.prefix);
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
    let holder = match (args.service, args.agents.as_slice(), args.roles.as_slice()) {
        (Some(service), ..) => Holder::Service(service),
        (None, [agent], []) => Holder::Agent(agent.clone()),
        (None, [person], roles) => Holder::Person {
            name: person.clone(),
            roles: roles.to_vec(),
        },
        _ => {
            return Err(Failure::usage(
                "it prints one user at a time; several have accounts of their own with --accounts",
            ));
        }
    };
    let layout = Layout::new(&settings.storage.prefix, settings.storage.choices());
    // Only operators have no limits, and they are not named here.
    let permissions = permissions_of(&holder, &layout)
        .ok_or_else(|| Failure::usage("an operator needs a user without limits"))?;
    let user = User {
        user: holder.name(),
        permissions,
        inbox_prefix: inbox_prefix_of(&holder),
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
    let inbox = inbox_prefix.as_ref().map_or_else(String::new, |prefix| {
        format!("# The client of {user} must use the inbox prefix {prefix}.\n")
    });
    format!(
        "{inbox}{{\n  user: \"{user}\"\n  permissions: {{\n    publish: [{}]\n    subscribe: [{}]\n  }}\n}}\n",
        quoted(&permissions.publish),
        quoted(&permissions.subscribe),
    )
}

/// Texts in quotation marks, as in a list of the broker's configuration.
fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    quoted.join(", ")
}
