//! `concord expert`: people who rule.

use clap::{Args, Subcommand};
use concord_wire::AgentId;
use concord_wire::payload::{Contact, Expert};
use concord_wire::subject::Service;
use serde_json::json;

use crate::shared::args::{JsonArg, agent_id, words};
use crate::shared::connection::{ConnectionArgs, command};
use crate::shared::failure::Failure;
use crate::shared::output::{self, NAMED, count, styled};

mod list;

/// The verbs of `concord expert`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExpertVerb {
    /// Register a person who rules, or change their particulars.
    Register(RegisterArgs),
    /// Take a person off the list; the debates they have wait again.
    Leave(LeaveArgs),
    /// List the people who rule, and the debates that they have.
    List(ListArgs),
}

/// Arguments of `concord expert register`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord expert register eva --domain valuation --domain \"credit risk\" --email eva@example.org
  concord expert register eva --capacity 5 --json

Registering again puts the new particulars in place of the old ones; the debates stay with the person.")]
pub(crate) struct RegisterArgs {
    /// The id of the person.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The person's name.
    #[arg(long, value_parser = words)]
    name: Option<String>,
    /// A domain that the person knows; may be repeated.
    #[arg(long = "domain", value_name = "DOMAIN", value_parser = words)]
    domains: Vec<String>,
    /// At most so many debates at a time.
    #[arg(long, value_name = "N", default_value_t = concord_wire::payload::CAPACITY_USUAL)]
    capacity: u32,
    /// The address to which mail is sent when a debate waits.
    #[arg(long)]
    email: Option<String>,
    /// The address that is called when a debate waits.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// The person who gives the command [default: the expert].
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: Option<AgentId>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord expert leave`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord expert leave eva --why \"on holiday until June\"")]
pub(crate) struct LeaveArgs {
    /// The person who leaves.
    #[arg(value_parser = agent_id)]
    agent: AgentId,
    /// The reason.
    #[arg(long, value_parser = words)]
    why: String,
    /// The person who gives the command [default: the expert].
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    by: Option<AgentId>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord expert list`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord expert list --json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: ExpertVerb) -> Result<u8, Failure> {
    match verb {
        ExpertVerb::Register(args) => register(connection, args).await,
        ExpertVerb::Leave(args) => leave(connection, args).await,
        ExpertVerb::List(args) => list::run(connection, args.json).await,
    }
}

impl RegisterArgs {
    fn expert(&self) -> Result<Expert, Failure> {
        let expert = Expert {
            agent_id: self.agent.clone(),
            name: self.name.clone(),
            domains: self.domains.clone(),
            contact: Contact {
                email: self.email.clone(),
                webhook: self.webhook.clone(),
            },
            capacity: self.capacity,
        };
        let wrong = |fault: concord_wire::Fault| {
            Failure::usage(format!(
                "{}: {} {}",
                fault.pointer.trim_start_matches('/'),
                fault.message,
                fault.advice
            ))
        };
        expert.check("").map_err(wrong)?;
        Ok(expert)
    }
}

async fn register(connection: &ConnectionArgs, args: RegisterArgs) -> Result<u8, Failure> {
    let expert = args.expert()?;
    let by = args.by.as_ref().unwrap_or(&expert.agent_id);
    let broker = connection.connect().await?;
    let request = json!({ "expert": expert, "by": by });
    let done = command(
        &broker,
        Service::DebateFacilitator,
        "register_expert",
        &request,
    )
    .await?;
    if args.json.json {
        output::json(&json!({ "registered": expert, "by": by, "done": done }))?;
        return Ok(0);
    }
    let domains = match expert.domains.as_slice() {
        [] => "debates of every domain".to_owned(),
        domains => domains.join(", "),
    };
    let capacity = count(expert.capacity, "debate");
    output::print(&format!(
        "{} is registered: {domains}; at most {capacity}\n",
        styled(NAMED, &expert.agent_id)
    ))?;
    Ok(0)
}

async fn leave(connection: &ConnectionArgs, args: LeaveArgs) -> Result<u8, Failure> {
    let by = args.by.as_ref().unwrap_or(&args.agent);
    let broker = connection.connect().await?;
    let request = json!({ "agent_id": args.agent, "by": by, "why": args.why });
    let done = command(
        &broker,
        Service::DebateFacilitator,
        "expert_leaves",
        &request,
    )
    .await?;
    match args.json.json {
        true => {
            output::json(&json!({ "left": args.agent, "by": by, "why": args.why, "done": done }))?
        }
        false => output::print(&format!(
            "{} is given no more debates\n",
            styled(NAMED, &args.agent)
        ))?,
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

    fn expert(arguments: &[&str]) -> Result<Expert, Failure> {
        let line = Line::try_parse_from([&["register"], arguments].concat()).unwrap();
        line.args.expert()
    }

    #[test]
    fn an_expert_is_made_of_the_command_line() {
        let eva = expert(&[
            "eva",
            "--domain",
            "tax",
            "--domain",
            "credit risk",
            "--email",
            "eva@example.org",
        ])
        .unwrap();
        assert_eq!((eva.capacity, eva.domains.len()), (3, 2));
        assert_eq!(eva.contact.email.as_deref(), Some("eva@example.org"));
        for (arguments, named) in [
            (&["eva", "--capacity", "0"][..], "capacity: "),
            (&["eva", "--email", "nowhere"], "contact/email: "),
            (&["eva", "--webhook", "example.org"], "contact/webhook: "),
        ] {
            let failure = expert(arguments).unwrap_err();
            assert!(
                failure.code() == 2 && failure.to_string().starts_with(named),
                "{failure}"
            );
        }
        for wrong in [
            &["register", "e.va"][..],
            &["register", "eva", "--domain", " "],
            &["register"],
        ] {
            assert!(Line::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
