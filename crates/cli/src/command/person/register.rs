//! `concord person register`: somebody is registered with what they may do, or that is changed.

use clap::Args;
use concord_runtime::signing;
use concord_wire::AgentId;
use concord_wire::payload::{CAPACITY_USUAL, Contact, PersonKind, PersonRecord, Role, RoleGrant};
use concord_wire::subject::Service;
use serde_json::json;

use super::{OperatorArgs, show};
use crate::shared::args::{agent_id, role, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::output::{self, DOUBTFUL, NAMED, one_line, styled};

/// Arguments of `concord person register`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord person register eva --role arbiter --domain valuation --email eva@example.org
  concord person register ben --role reviewer --gate \"valuation review\"
  concord person register olga --role operator --role opener
  concord person register price-feed --agent --role outcome_source --domain valuation
  concord person register eva --keep --email eva@example.com

Roles:
  opener          opens cases, and says afterwards what proved right in them
  arbiter         rules on the debates that the queue gives them
  reviewer        reviews what stands provisionally, and lets cases pass gates
  operator        registers people and agents; everything that this command does without --as
  auditor         reads
  outcome_source  says what proved right after a debate
  alerter         alerts everybody

--domain limits arbiter, reviewer and outcome_source, --gate limits reviewer. Registering again puts all roles and particulars in
place of the old ones; with --keep those that are given, roles with their limits as one. What the NATS user of the person may do:
concord permissions --role ROLE NAME.")]
pub(crate) struct RegisterArgs {
    /// The name under which the person speaks.
    #[arg(value_parser = agent_id)]
    name: AgentId,
    /// A role; may be repeated.
    #[arg(long = "role", value_name = "ROLE", required_unless_present = "keep", value_parser = role)]
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
    /// At most so many debates at a time, for an arbiter [default: 3].
    #[arg(long, value_name = "N")]
    capacity: Option<u32>,
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
    /// What is not given stays as it is; somebody who is suspended is left alone.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    by: OperatorArgs,
}

impl RegisterArgs {
    /// The roles that are given, each with its limits.
    fn grants(&self) -> Result<Vec<RoleGrant>, Failure> {
        let is_limited =
            |role: &Role| matches!(role, Role::Arbiter | Role::Reviewer | Role::OutcomeSource);
        let limits = |limits: &[String], is_so: bool| {
            if is_so { limits.to_vec() } else { Vec::new() }
        };
        let grant = |role: &Role| RoleGrant {
            role: *role,
            domains: limits(&self.domains, is_limited(role)),
            gates: limits(&self.gates, *role == Role::Reviewer),
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
        Ok(self.roles.iter().map(grant).collect())
    }

    /// Who is to be registered: what is given, and what is kept of how they were.
    fn person(&self, kept: Option<&PersonRecord>) -> Result<PersonRecord, Failure> {
        let grants = self.grants()?;
        let mut person = kept.cloned().unwrap_or_else(|| PersonRecord {
            name: self.name.clone(),
            kind: PersonKind::Person,
            display_name: None,
            roles: Vec::new(),
            user: None,
            account: None,
            contact: Contact::default(),
            capacity: CAPACITY_USUAL,
            public_key: None,
        });
        if !grants.is_empty() {
            person.roles = grants;
        }
        if person.roles.is_empty() {
            let name = &self.name;
            return Err(Failure::usage(format!(
                "nobody is registered as {name} yet, so there is nothing to keep; say what they may do with --role"
            )));
        }
        if self.agent {
            person.kind = PersonKind::Agent;
        }
        person.capacity = self.capacity.unwrap_or(person.capacity);
        let key = self.public_key.as_deref().map(public_key).transpose()?;
        for (place, given) in [
            (&mut person.display_name, &self.display_name),
            (&mut person.user, &self.user),
            (&mut person.account, &self.account),
            (&mut person.contact.email, &self.email),
            (&mut person.contact.webhook, &self.webhook),
            (&mut person.public_key, &key),
        ] {
            if given.is_some() {
                place.clone_from(given);
            }
        }
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

pub(super) async fn register(
    connection: &ConnectionArgs,
    args: &RegisterArgs,
) -> Result<u8, Failure> {
    let by = args.by.by(connection);
    // What is wrong with the command line is said before anybody is asked.
    let alone = if args.keep {
        None
    } else {
        Some(args.person(None)?)
    };
    let broker = connection.connect().await?;
    let person = if let Some(person) = alone {
        person
    } else {
        let known = show::known(&broker, &args.name).await?;
        if let Some(row) = known.as_ref().filter(|row| row.suspended.is_some()) {
            return left_alone(row, args);
        }
        args.person(known.as_ref().map(|row| &row.person))?
    };
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

/// Says that somebody is suspended and stays as they are.
fn left_alone(row: &show::Row, args: &RegisterArgs) -> Result<u8, Failure> {
    let (name, standing) = (&args.name, one_line(&row.standing(), 200));
    output::complain(&format!(
        "{} {name} stays as they are ({standing}). Lift that first: concord person resume {name}",
        styled(DOUBTFUL, "warning:")
    ));
    if args.by.json.json {
        output::json(&json!({ "left_alone": row }))?;
    }
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
        line.args.person(None)
    }

    #[test]
    fn what_is_not_given_is_kept() {
        let key = "a".repeat(64);
        let all = "eva --role arbiter --domain tax --name Eva --capacity 5 --email eva@example.org --webhook https://example.org/eva \
                   --user eva --account MAIN --public-key";
        let known =
            person(&[&all.split_whitespace().collect::<Vec<_>>()[..], &[&key]].concat()).unwrap();
        let kept = |arguments: &[&str], known: Option<&PersonRecord>| {
            let words = [&["register", "eva", "--keep"], arguments].concat();
            Line::try_parse_from(words).unwrap().args.person(known)
        };
        assert_eq!(kept(&[], Some(&known)).unwrap(), known);
        let same = ["--role", "arbiter", "--domain", "tax"];
        assert_eq!(kept(&same, Some(&known)).unwrap(), known);
        let more = ["--role", "auditor", "--role", "reviewer"];
        let widened = kept(&more, Some(&known)).unwrap();
        assert_eq!(show::roles(&widened), ["auditor", "reviewer"]);
        let mut expected = known.clone();
        expected.roles.clone_from(&widened.roles);
        assert_eq!(widened, expected);
        let moved = kept(&["--email", "eva@example.com"], Some(&known)).unwrap();
        expected.clone_from(&known);
        expected.contact.email = Some("eva@example.com".into());
        assert_eq!(moved, expected);
        let anew = kept(&["--role", "auditor"], None).unwrap();
        assert_eq!(anew, person(&["eva", "--role", "auditor"]).unwrap());
        let nobody = kept(&[], None).unwrap_err();
        assert!(nobody.code() == 2 && nobody.to_string().contains("--role"));
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
