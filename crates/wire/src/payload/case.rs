//! Opening a case and handing out its task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::task::Work;
use crate::id::{AgentId, CaseId, GateName, Token};
use crate::payload::track_record::Circumstances;
use crate::timestamp::Timestamp;

/// Parameters of the request `open_case`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenCase {
    /// The case's id; one is made from the request's `message_id` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The name of a preset (`"contract-review"`), or an object with `preset` and the fields that differ from it.
    #[serde(default)]
    #[schemars(schema_with = "crate::policy::requested_policy")]
    pub policy: Value,
    /// The participants.
    pub participants: Vec<AgentId>,
    /// The matter of the case.
    pub task: Task,
    /// Named human checkpoints, in the order in which they are passed. None for a case that ends with its decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateName>,
    /// The circumstances in which it is judged, if they are known: track records are weighed by them.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
}

impl OpenCase {
    /// A case under the usual policy, without gates.
    pub fn new(participants: Vec<AgentId>, task: Task) -> Self {
        let (case_id, policy, gates, circumstances) = Default::default();
        Self {
            case_id,
            policy,
            participants,
            task,
            gates,
            circumstances,
        }
    }
}

/// The action of a request to the coordinator that lets an agent into a case; the parameters are an [`AddParticipant`].
pub const ADD_PARTICIPANT: &str = "add_participant";

/// The parameters of `add_participant`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddParticipant {
    /// The agent that is to join.
    pub agent_id: AgentId,
}

/// The matter of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Kind of task, for example `contract_review`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A title for people to read.
    #[serde(default)]
    pub title: String,
    /// Whatever the participants need, as JSON.
    #[serde(default)]
    pub input: Value,
}

/// The payload of `task_assignment`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAssignment {
    /// The task.
    pub task: Task,
    /// The time until which a finding counts.
    pub deadline: Timestamp,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
    /// Everyone who takes part.
    pub participants: Vec<AgentId>,
    /// The task, where it is one that a strategy hands out and not the matter of a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<Work>>,
}
