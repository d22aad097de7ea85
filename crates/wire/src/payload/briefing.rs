//! What somebody must know who comes to a case, and news about a case or about work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{BoardListing, Lease, StatusReport, Task};
use crate::id::{AgentId, CaseId, DebateId};
use crate::timestamp::Timestamp;

/// The payload of `session_briefing`, and the coordinator's answer to the verb `briefing`. Agents that brief each other give
/// `so_far`, and of the rest what they know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionBriefing {
    /// What has happened so far, in words.
    pub so_far: String,
    /// The case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// What the case is about. An input of more than 256 KiB is shortened to its beginning, as a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The phase: `collecting`, `detecting`, `deliberating`, `decided` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The one who opened the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// Everyone who takes part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<AgentId>,
    /// Those whose finding is still awaited; nobody when findings are closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<AgentId>,
    /// The time until which a finding counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings_due: Option<Timestamp>,
    /// The time at which the case is decided at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_due: Option<Timestamp>,
    /// Debates that go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debates: Vec<DebateId>,
    /// The entries of the board; their values are read with the verb `board`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub board: Vec<BoardListing>,
    /// Who has committed to what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<Lease>,
}

/// The payload of `info_update`: news without a question. Fields beside these are free.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InfoUpdate {
    /// The news, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as `text`, as some dialects call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What it is about, for example the name of an entry of the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Whatever else there is.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The payload of `status` about work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkStatus {
    /// How the work is, in a word, for example `working`.
    pub state: String,
    /// How far it is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub progress: Option<f64>,
    /// What it is about, for example a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// The payload of `status`: about an agent, or about its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StatusMessage {
    /// How an agent is.
    Agent(StatusReport),
    /// How its work is.
    Work(WorkStatus),
}
