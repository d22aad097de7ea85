//! Opening a case and handing out its task.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
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
    /// The matter of the case; words are read as its title.
    #[serde(deserialize_with = "task_or_title")]
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

/// Reads the task of whoever opens one: an object, or words, which are the title of one that is of no other kind than `task`.
pub(super) fn task_or_title<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Task, D::Error> {
    struct TaskOrTitle;
    impl<'de> Visitor<'de> for TaskOrTitle {
        type Value = Task;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with at least {\"type\": ...}, or a text as its title")
        }

        fn visit_str<E: serde::de::Error>(self, title: &str) -> Result<Task, E> {
            let (kind, title) = ("task".to_owned(), title.to_owned());
            Ok(Task {
                kind,
                title,
                input: Value::Null,
            })
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Task, A::Error> {
            Task::deserialize(MapAccessDeserializer::new(fields))
        }
    }
    deserializer.deserialize_any(TaskOrTitle)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::envelope::from_json;
    use crate::fault::Fault;
    use crate::payload::OpenTask;

    fn opened(task: Value) -> Result<Task, Fault> {
        let open = json!({ "strategy": "broadcast", "task": task }).to_string();
        let strategy = from_json::<OpenTask>(open.as_bytes(), "").map(|open| open.task);
        let open = json!({ "participants": ["ann"], "task": task }).to_string();
        let case = from_json::<OpenCase>(open.as_bytes(), "").map(|open| open.task);
        assert_eq!(strategy, case);
        case
    }

    #[test]
    fn a_task_in_words_has_them_as_its_title() {
        let task = opened(json!("Translate this")).unwrap();
        let (kind, title) = (task.kind.as_str(), task.title.as_str());
        assert_eq!(
            (kind, title, &task.input),
            ("task", "Translate this", &Value::Null)
        );
        let whole = json!({ "type": "sum", "title": "Sum", "input": [1, 2] });
        assert_eq!(
            serde_json::to_value(opened(whole.clone()).unwrap()).unwrap(),
            whole
        );
    }

    #[test]
    fn who_gives_no_task_is_told_what_one_needs() {
        let fault = opened(json!(5)).unwrap_err();
        assert_eq!(fault.pointer, "/task");
        assert!(fault.advice.contains("{\"type\": ...}"), "{fault}");
        assert_eq!(
            opened(json!({ "title": "Sum" })).unwrap_err().pointer,
            "/task/type"
        );
        assert_eq!(
            opened(json!({ "type": 5 })).unwrap_err().pointer,
            "/task/type"
        );
    }
}
