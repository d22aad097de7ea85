//! How an agent is: what it says in heartbeats and status messages, and what others are told of it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Card, check_name, null_is_absent, shortened};
use crate::envelope::{Envelope, from_json};
use crate::fault::Fault;
use crate::id::AgentId;

/// The action of a request that registers an agent, or replaces its card; the parameters are a [`Card`].
pub const REGISTER_AGENT: &str = "register_agent";
/// The same for an agent that must be registered already.
pub const UPDATE_AGENT: &str = "update_agent";
/// The action of a request that takes an agent off the register.
pub const DEREGISTER_AGENT: &str = "deregister_agent";

/// The status of an agent: whether it can be given work.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It can be given work.
    #[default]
    Available,
    /// It is there, and works on something else.
    Busy,
    /// It is not there, or says that it cannot.
    Unavailable,
}

impl AgentStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Available, Self::Busy, Self::Unavailable];

    /// The status of this name, in whatever case it is written.
    fn in_any_case(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|one| one.as_str().eq_ignore_ascii_case(word.trim()))
    }

    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for AgentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is published on `beat.<agent>`, as a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Beat {
    /// The status of the agent.
    #[serde(default)]
    pub status: AgentStatus,
}

impl Beat {
    /// Reads a heartbeat; none where it cannot be read. One whose status nobody knows is one without a status. What the broker answers is none: an agent may have named the subject of somebody
    /// else's heartbeats for the reply to something of its own.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Heard {
            #[serde(default)]
            status: Value,
            /// Of the broker's acknowledgements.
            stream: Option<IgnoredAny>,
        }
        let heard: Heard = serde_json::from_slice(bytes).ok()?;
        let known = heard.status.as_str().and_then(AgentStatus::in_any_case);
        let status = known.unwrap_or_default();
        heard.stream.is_none().then_some(Beat { status })
    }
}

/// The parameters of `deregister_agent`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deregister {
    /// The agent; the sender when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The reason, for people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Deregister {
    /// Checks lengths.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        check_name(&format!("{pointer}/why"), &self.why)
    }
}

/// The payload of `agent_joined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentJoined {
    /// The newcomer, or an agent with another card than before.
    pub card: Card,
    /// The status of the agent.
    pub status: AgentStatus,
}

/// The payload of `status`, about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReport {
    /// The agent; the sender when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The status of the agent.
    pub status: AgentStatus,
    /// The reason, for people to read.
    #[serde(
        default,
        deserialize_with = "null_is_absent",
        skip_serializing_if = "String::is_empty"
    )]
    pub why: String,
}

impl StatusReport {
    /// What a `status` says of an agent; none where it is about work. The word may be written in any case, and may be all that is said, as
    /// in the dialects.
    pub fn of(message: &Envelope) -> Result<Option<Self>, Fault> {
        let mut fields: Map<String, Value> = message.payload()?;
        let is_of_work = ["progress", "about"]
            .iter()
            .any(|name| fields.contains_key(*name));
        let stated = ["status", "content", "state"]
            .into_iter()
            .find(|name| fields.contains_key(*name));
        let Some(name) = stated.filter(|name| *name != "state" || !is_of_work) else {
            return Ok(None);
        };
        let word = fields.remove(name).unwrap_or_default();
        let known = word.as_str().and_then(AgentStatus::in_any_case);
        let Some(status) = known else {
            // How work is may be said in any word.
            return match name {
                "state" => Ok(None),
                _ => Err(no_status(name, &word)),
            };
        };
        fields.insert("status".into(), Value::String(status.to_string()));
        let fields = serde_json::to_vec(&fields).unwrap_or_default();
        from_json(&fields, "/payload").map(Some)
    }
}

fn no_status(field: &str, word: &Value) -> Fault {
    Fault::invalid(
        format!("/payload/{field}"),
        format!("{} is no status of an agent.", shortened(&word.to_string())),
        format!(
            "Write one of: {}. How work is belongs into \"state\".",
            AgentStatus::ALL.map(AgentStatus::as_str).join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_heartbeat_is_an_object_and_no_answer_of_the_broker() {
        for (bytes, status) in [
            ("", None),
            (" \n", None),
            (r#"{"stream":"CONCORD_MESSAGES","seq":7}"#, None),
            ("{}", Some(AgentStatus::Available)),
            (r#"{"status":"busy"}"#, Some(AgentStatus::Busy)),
            (
                r#"{"status":"unavailable","load":3}"#,
                Some(AgentStatus::Unavailable),
            ),
            (r#"{"status":"BUSY"}"#, Some(AgentStatus::Busy)),
            (r#"{"status":"sleepy"}"#, Some(AgentStatus::Available)),
            (r#"{"status":5}"#, Some(AgentStatus::Available)),
            ("alive", None),
        ] {
            assert_eq!(
                Beat::decode(bytes.as_bytes()).map(|beat| beat.status),
                status,
                "{bytes}"
            );
        }
        assert_eq!(Beat::decode(&[0xff, 0xfe]), None);
    }

    #[test]
    fn a_status_is_written_as_it_is_named() {
        for status in AgentStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }

    fn status(payload: Value) -> Result<Option<AgentStatus>, Fault> {
        let message = json!({
            "message_id": "m-1", "timestamp": "2026-11-21T20:00:00Z", "from_agent": "bob", "to_agent": "coordinator",
            "message_type": "status", "payload": payload,
        });
        let message: Envelope = serde_json::from_value(message).unwrap();
        Ok(StatusReport::of(&message)?.map(|report| report.status))
    }

    #[test]
    fn a_status_is_read_in_any_case_and_form_and_what_is_none_is_refused() {
        for (payload, expected) in [
            (json!({ "status": "busy" }), Some(AgentStatus::Busy)),
            (
                json!({ "status": "BUSY", "why": null }),
                Some(AgentStatus::Busy),
            ),
            (json!({ "content": "busy" }), Some(AgentStatus::Busy)),
            (
                json!({ "content": " Available" }),
                Some(AgentStatus::Available),
            ),
            (json!({ "state": "busy" }), Some(AgentStatus::Busy)),
            // About work.
            (json!({ "state": "busy", "about": "t-1" }), None),
            (json!({ "state": "working", "progress": 0.5 }), None),
            (json!({ "progress": 0.5 }), None),
            (json!({}), None),
        ] {
            assert_eq!(status(payload.clone()), Ok(expected), "{payload}");
        }
        for (payload, pointer) in [
            (json!({ "status": "working" }), "/payload/status"),
            (json!({ "status": 5 }), "/payload/status"),
            (json!({ "content": "I am half done." }), "/payload/content"),
            (json!({ "status": "busy", "why": 7 }), "/payload/why"),
        ] {
            let fault = status(payload.clone()).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{payload}");
        }
        let fault = status(json!({ "status": "working" })).unwrap_err();
        assert!(
            fault.advice.contains("available, busy, unavailable"),
            "{fault}"
        );
    }
}
