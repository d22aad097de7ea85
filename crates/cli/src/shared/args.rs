//! Arguments that many verbs have, and the readers of their values.

use clap::Args;
use concord_wire::payload::Role;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output;

/// Output for programs.
#[derive(Debug, Clone, Copy, Args)]
pub struct JsonArg {
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

impl JsonArg {
    /// Prints a value as JSON, or as the text that `text` makes of it.
    pub(crate) fn print<T: Serialize + ?Sized>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.json {
            true => output::json(value),
            false => output::print(&text(value)),
        }
    }
}

/// The person who gives a command, and the reason, which are recorded with it.
#[derive(Debug, Args)]
pub(crate) struct ByArgs {
    /// The person who gives the command.
    #[arg(long, value_name = "PERSON", value_parser = agent_id)]
    pub(crate) by: AgentId,
    /// The reason.
    #[arg(long, value_parser = words)]
    pub(crate) why: String,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Reads the id of an agent or a person from the command line.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, String> {
    AgentId::new(text).map_err(|error| error.to_string())
}

/// Reads a role from the command line.
pub(crate) fn role(text: &str) -> Result<Role, String> {
    let known = || Role::ALL.map(Role::as_str).join(", ");
    Role::parse(text).ok_or_else(|| format!("roles are {}", known()))
}

/// Reads the name of a service from the command line.
pub(crate) fn service(text: &str) -> Result<Service, String> {
    let known = Service::ALL.iter().map(|service| service.as_str());
    Service::parse(text)
        .map_err(|_| format!("services are {}", known.collect::<Vec<_>>().join(", ")))
}

/// Reads the id of a case from the command line.
pub(crate) fn case_id(text: &str) -> Result<CaseId, String> {
    CaseId::new(text).map_err(|error| error.to_string())
}

/// Reads the id of a debate from the command line.
pub(crate) fn debate_id(text: &str) -> Result<DebateId, String> {
    DebateId::new(text).map_err(|error| error.to_string())
}

/// Reads JSON from the command line.
pub(crate) fn json_value(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("it is not JSON ({error}); write a text as '\"text\"'"))
}

/// Reads a position in words, which may begin with the sign of a number: `-2 %`. What begins with two is the next option, after words that were
/// forgotten.
pub(crate) fn position_words(text: &str) -> Result<String, String> {
    match text.starts_with("--") {
        true => Err("say it in words; words that begin with -- are taken for an option".to_owned()),
        false => words(text),
    }
}

/// Reads a text that must not be blank from the command line.
pub(crate) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("say it in words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
