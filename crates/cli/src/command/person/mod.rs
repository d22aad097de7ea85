//! `concord person`: people, and agents with a role, and what they may do.

use clap::{Args, Subcommand};
use concord_runtime::signing;
use concord_wire::AgentId;
use concord_wire::payload::{Contact, PersonKind, PersonRecord, Role, RoleGrant};
use concord_wire::subject::Service;
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, role, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, styled};

mod show;

/// The verbs of `concord person`.
#[derive(Debug, Subcommand)]
pub(crate) enum PersonVerb {
    /// Register somebody and what they may do, or change that.
    Register(RegisterArgs),
    /// List everybody who is registered.
    List(ListArgs),
    /// Show one of them.
    Show(ShowArgs),
    /// Let somebody do nothing until further notice; the debates that an arbiter has wait for others.
    Suspend(SuspendArgs),
    /// Let somebody who was suspended act again.
    Resume(ResumeArgs),
}

/// Arguments of `concord person register`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord person register eva --role arbiter --domain valuation --email eva@example.org
  concord person register ben --role reviewer --gate \"valuation review\"
  concord person register olga --role operator --role opener
  concord person register price-feed --agent --role outcome_source --domain valuation

Roles:
  opener          opens cases, and says afterwards what proved right in them
  arbiter         rules on the debates that the queue gives them
  reviewer        reviews what stands provisionally, and lets cases pass gates
  operator        registers people and agents; everything that this command does without --as
  auditor         reads
  outcome_source  says what proved right after a debate
  alerter         alerts everybody

--domain limits arbiter, reviewer and outcome_source, --gate limits reviewer. Registering again puts all roles and particulars in
place of the old ones. What the NATS user of the person may do: concord permissions --role ROLE NAME.")]
pub(crate) struct RegisterArgs {
    /// The name under which the person speaks.
    #[arg(value_parser = agent_id)]
    name: AgentId,
    /// A role; may be repeated.
    #[arg(long = "role", value_name = "ROLE", required = true, value_parser = role)]
    roles: Vec<Role>,
    /// A domain to which the roles are limited; may be repeated.
    #[arg(long = "domain", value_name = "DOMAIN", value_parser = words)]
    domains: Vec<String>,
    /// A gate to which the role reviewer is limited; may be repeated.
    #[arg(long = "gate", value_name = "GATE", value_parser = words)]
    gates: Vec<String>,
    /// It is a program, which can be opener, outcome_source and alerter only.
    #[arg(long)]
    agent: bool,
    /// A name for people to read.
    #[arg(long = "name", value_name = "TEXT", value_parser = words)]
    display_name: Option<String>,
    /// At most so many debates at a time, for an arbiter.
    #[arg(long, value_name = "N", default_value_t = concord_wire::payload::CAPACITY_USUAL)]
    capacity: u32,
    /// The address to which mail is sent when something waits.
    #[arg(long)]
    email: Option<String>,
    /// The address that is called when something waits.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// The NATS user, for a reader.
    #[arg(long, value_name = "USER", value_parser = words)]
    user: Option<String>,
    /// The NATS account, for a reader.
    #[arg(long, value_name = "ACCOUNT", value_parser = words)]
    account: Option<String>,
    /// The public ed25519 key with which what they sign is verified: its file, as `concord keys generate` writes it, or its digits.
    #[arg(long, value_name = "FILE|HEX")]
    public_key: Option<String>,
    #[command(flatten)]
    by: OperatorArgs,
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
        PersonVerb::Register(args) => register(connection, &args).await,
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

impl RegisterArgs {
    fn person(&self) -> Result<PersonRecord, Failure> {
        let is_limited =
            |role: &Role| matches!(role, Role::Arbiter | Role::Reviewer | Role::OutcomeSource);
        let grant = |role: &Role| {
            let domains = if is_limited(role) {
                self.domains.clone()
            } else {
                Vec::new()
            };
            let reviews = *role == Role::Reviewer;
            let gates = if reviews {
                self.gates.clone()
            } else {
                Vec::new()
            };
            RoleGrant {
                role: *role,
                domains,
                gates,
            }
        };
        if !self.gates.is_empty() && !self.roles.contains(&Role::Reviewer) {
            return Err(Failure::usage(
                "--gate limits the role reviewer, which is not given",
            ));
        }
        if !self.domains.is_empty() && !self.roles.iter().any(is_limited) {
            return Err(Failure::usage(
                "--domain limits the roles arbiter, reviewer and outcome_source, of which none is given",
            ));
        }
        let kind = if self.agent {
            PersonKind::Agent
        } else {
            PersonKind::Person
        };
        let person = PersonRecord {
            name: self.name.clone(),
            kind,
            display_name: self.display_name.clone(),
            roles: self.roles.iter().map(grant).collect(),
            user: self.user.clone(),
            account: self.account.clone(),
            contact: Contact {
                email: self.email.clone(),
                webhook: self.webhook.clone(),
            },
            capacity: self.capacity,
            public_key: self.public_key.as_deref().map(public_key).transpose()?,
        };
        let wrong = |fault: concord_wire::Fault| {
            let place = fault.pointer.trim_start_matches('/');
            Failure::usage(format!("{place}: {} {}", fault.message, fault.advice))
        };
        person.check("").map_err(wrong)?;
        Ok(person)
    }
}

/// The digits of a public key: those that were given, or those of the file with this name.
fn public_key(given: &str) -> Result<String, Failure> {
    let read = std::fs::read_to_string(given);
    let text = read.unwrap_or_else(|_| given.to_owned());
    signing::key_digits(&text, given).map_err(|error| Failure::usage(error.to_string()))
}

async fn register(connection: &ConnectionArgs, args: &RegisterArgs) -> Result<u8, Failure> {
    let (person, by) = (args.person()?, args.by.by(connection));
    let broker = connection.connect().await?;
    let request = json!({ "person": person, "by": by });
    let done = command(&broker, Service::Coordinator, "register_person", &request).await?;
    if args.by.json.json {
        output::json(&json!({ "registered": person, "by": by, "done": done }))?;
        return Ok(0);
    }
    let roles = show::roles(&person).join("; ");
    output::print(&format!(
        "{} is registered: {roles}\n",
        styled(NAMED, &person.name)
    ))?;
    Ok(0)
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RegisterArgs,
    }

    fn person(arguments: &[&str]) -> Result<PersonRecord, Failure> {
        let line = Line::try_parse_from([&["register"], arguments].concat()).unwrap();
        line.args.person()
    }

    #[test]
    fn a_person_is_made_of_the_command_line() {
        let both = ["eva", "--role", "arbiter", "--role", "reviewer"];
        let limits = [
            "--domain",
            "tax",
            "--gate",
            "valuation",
            "--email",
            "eva@example.org",
        ];
        let eva = person(&[&both[..], &limits].concat()).unwrap();
        assert_eq!((eva.capacity, eva.roles.len()), (3, 2));
        assert_eq!(eva.contact.email.as_deref(), Some("eva@example.org"));
        assert_eq!(
            (eva.roles[0].domains.len(), eva.roles[0].gates.len()),
            (1, 0)
        );
        assert_eq!(
            show::roles(&eva)[1],
            "reviewer in tax at the gate valuation"
        );
        for (arguments, named) in [
            (
                &["eva", "--role", "arbiter", "--capacity", "0"][..],
                "capacity: ",
            ),
            (
                &["eva", "--role", "arbiter", "--email", "nowhere"],
                "contact/email: ",
            ),
            (
                &["eva", "--role", "auditor", "--role", "auditor"],
                "roles/1/role: ",
            ),
            (&["eva", "--role", "arbiter", "--gate", "g"], "--gate "),
            (&["eva", "--role", "arbiter", "--agent"], "roles/0/role: "),
        ] {
            let failure = person(arguments).unwrap_err();
            assert!(
                failure.code() == 2 && failure.to_string().starts_with(named),
                "{failure}"
            );
        }
        for wrong in [
            &["register", "e.va", "--role", "arbiter"][..],
            &["register", "eva", "--role", "king"],
            &["register", "eva"],
        ] {
            assert!(Line::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
