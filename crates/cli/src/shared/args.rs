//! Arguments that many verbs have, and the readers of their values.

use clap::Args;
use concord_wire::{AgentId, CaseId, DebateId};

/// Output for programs.
#[derive(Debug, Clone, Copy, Args)]
pub struct JsonArg {
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Reads the id of an agent or a person from the command line.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, String> {
    AgentId::new(text).map_err(|error| error.to_string())
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

/// Reads a text that must not be blank from the command line.
pub(crate) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("say it in words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
