//! Shared memory: what an agent knows, under topics of its own, readable by others and written by it alone.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::check_name;
use crate::envelope::check_confidence;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, Token};
use crate::timestamp::Timestamp;

/// The action of a request to the coordinator that writes a topic of the sender's memory; the parameters are a [`Remember`].
pub const MEMORY_PUT: &str = "memory_put";
/// Most bytes of a value with its evidence and tags, as JSON.
pub const MEMORY_ENTRY_BYTES_MAX: usize = 65_536;
/// Most tags, and most pieces of evidence, of one entry.
pub const MEMORY_LIST_MAX: usize = 32;

/// A point in the history of everything that is stored: `snap_` and the sequence of the last event that belongs to it. What
/// memory held there is the same whenever it is asked for. `snap_0` is the one before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot(pub u64);

/// Why a text is no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a snapshot is written snap_<number>, for example snap_12345, and not {0:?}")]
pub struct NoSnapshot(String);

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snap_{}", self.0)
    }
}

impl FromStr for Snapshot {
    type Err = NoSnapshot;

    fn from_str(text: &str) -> Result<Self, NoSnapshot> {
        let digits = text.strip_prefix("snap_");
        // One snapshot is written in one way: no sign, no leading zero.
        let number = digits.filter(|digits| *digits == "0" || !digits.starts_with(['0', '+']));
        let number = number.and_then(|digits| digits.parse().ok());
        number
            .map(Self)
            .ok_or_else(|| NoSnapshot(text.chars().take(80).collect()))
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Snapshot {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Snapshot".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^snap_(0|[1-9][0-9]*)$" })
    }
}

/// What an agent writes into its memory; the parameters of `memory_put`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Whose memory it is: the sender, who is meant where it is left out. Nobody writes into the memory of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The topic, one token of a subject.
    pub topic: Token,
    /// What is known of it, any JSON. `null` says that nothing is known any more; what was known before remains in the history.
    pub value: Value,
    /// How much it matters, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance: f64,
    /// How sure the sender is, 0 to 1; that of the envelope where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// What it rests on, for example the page of a report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MEMORY_LIST_MAX))]
    pub evidence: Vec<String>,
    /// Words under which it is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MEMORY_LIST_MAX))]
    pub tags: Vec<String>,
    /// The version that the sender has read; 0 where there is to be none. It is refused where another version stands by then. Left
    /// out, it is written on whatever stands: nobody else writes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<u64>,
}

impl Remember {
    /// Checks the form, and that it is `sender`'s own; `pointer` is where the parameters stand.
    pub fn check(&self, sender: &AgentId, pointer: &str) -> Result<(), Fault> {
        let at = |field: &str| format!("{pointer}/{field}");
        if let Some(agent) = self.agent.as_ref().filter(|agent| *agent != sender) {
            return Err(Fault::new(
                ErrorCode::Unauthorized,
                at("agent"),
                format!("It is the memory of {agent}, and {sender} is writing."),
                "Write into your own memory; send what another should know to that agent.",
            ));
        }
        check_share(&at("importance"), "importance", self.importance)?;
        if let Some(confidence) = self.confidence {
            check_confidence(&at("confidence"), confidence)?;
        }
        for (field, list) in [("evidence", &self.evidence), ("tags", &self.tags)] {
            check_list(&at(field), list)?;
        }
        let bytes = self.bytes();
        if bytes <= MEMORY_ENTRY_BYTES_MAX {
            return Ok(());
        }
        Err(Fault::new(
            ErrorCode::CapacityExceeded,
            at("value"),
            format!(
                "Value, evidence and tags have {bytes} bytes; an entry has at most {MEMORY_ENTRY_BYTES_MAX}."
            ),
            "Write a summary, and the parts under topics of their own.",
        ))
    }

    /// The bytes of value, evidence and tags.
    pub fn bytes(&self) -> usize {
        let lists = self.evidence.iter().chain(&self.tags).map(String::len);
        self.value.to_string().len() + lists.sum::<usize>()
    }
}

/// A number from 0 to 1.
fn check_share(pointer: &str, what: &str, value: f64) -> Result<(), Fault> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Fault::invalid(
        pointer,
        format!("{value} is no {what}."),
        "Give a number from 0 to 1.",
    ))
}

fn check_list(pointer: &str, list: &[String]) -> Result<(), Fault> {
    if list.len() > MEMORY_LIST_MAX {
        return Err(Fault::new(
            ErrorCode::CapacityExceeded,
            pointer,
            format!(
                "There are {}; at most {MEMORY_LIST_MAX} are kept.",
                list.len()
            ),
            "Name those that matter most.",
        ));
    }
    for (place, one) in list.iter().enumerate() {
        let pointer = format!("{pointer}/{place}");
        if one.trim().is_empty() {
            return Err(Fault::invalid(pointer, "It is blank.", "Leave it out."));
        }
        check_name(&pointer, one)?;
    }
    Ok(())
}

/// Whom an entry of a case reaches without being asked for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It was told at once to everybody in the case.
    Broadcast,
    /// It is held back until the next checkpoint of the case.
    Held,
    /// It is told to nobody.
    Kept,
}

impl Reach {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Held => "held",
            Self::Kept => "kept",
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the thresholds of an entry are other ones than those of the policy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Adapted {
    /// A debate of the case is open: they are lower.
    DebateOpen,
    /// The regime has changed while the case is open: they are lower.
    RegimeChanged,
    /// Most of the agent's last entries in the case were told at once: they are higher.
    OftenTold,
}

/// Whom an entry of a case reaches, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReach {
    /// Whom it reaches.
    pub reach: Reach,
    /// What was more important than this was told at once.
    pub broadcast_above: f64,
    /// What was more important than this was held back.
    pub hold_above: f64,
    /// Why these are other thresholds than those of the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapted: Vec<Adapted>,
}

/// What is known of a version of a topic, without its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryListing {
    /// Whose memory it is.
    pub agent: AgentId,
    /// The topic.
    pub topic: Token,
    /// The version, from 1.
    pub version: u64,
    /// The first snapshot that has this version.
    pub since: Snapshot,
    /// The time at which it was written.
    pub at: Timestamp,
    /// How much it matters, 0 to 1.
    pub importance: f64,
    /// How sure the agent is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Words under which it is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The case that it belongs to; without one everybody may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// Whom it reaches without being asked for. None outside cases, and where the case's policy tells nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<MemoryReach>,
    /// The bytes of value, evidence and tags.
    pub bytes: u64,
}

/// A version of a topic, as the coordinator shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryEntry {
    /// What is known of it.
    #[serde(flatten)]
    pub listing: MemoryListing,
    /// What was known.
    pub value: Value,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_the_senders_own_and_within_bounds() {
        let ann = AgentId::new("ann").unwrap();
        let read = |fields: Value| serde_json::from_value::<Remember>(fields);
        let good = json!({ "topic": "margin", "value": 0.25, "importance": 0.9 });
        assert_eq!(read(good.clone()).unwrap().check(&ann, "/p"), Ok(()));
        for (field, value, pointer) in [
            ("agent", json!("ben"), "/p/agent"),
            ("importance", json!(1.01), "/p/importance"),
            ("importance", json!(-0.1), "/p/importance"),
            ("confidence", json!(1.5), "/p/confidence"),
            ("value", json!("v".repeat(1 << 17)), "/p/value"),
            ("evidence", json!(["10-K page 45", " "]), "/p/evidence/1"),
            ("tags", json!(vec!["t"; 33]), "/p/tags"),
        ] {
            let mut fields = good.clone();
            fields[field] = value;
            let fault = read(fields).unwrap().check(&ann, "/p").unwrap_err();
            assert_eq!(fault.pointer, pointer, "{fault}");
        }
        for (field, value) in [
            ("topic", json!("with.dots")),
            ("topic", json!("_hidden")),
            ("importance", json!("much")),
            ("version", json!(1)),
        ] {
            let mut fields = good.clone();
            fields[field] = value;
            assert!(read(fields).is_err(), "{field}");
        }
    }

    #[test]
    fn a_snapshot_is_written_in_one_way() {
        let read = |text: &str| text.parse::<Snapshot>();
        assert_eq!(read("snap_12345"), Ok(Snapshot(12_345)));
        assert_eq!(read("snap_0"), Ok(Snapshot(0)));
        assert_eq!(Snapshot(7).to_string(), "snap_7");
        for bad in [
            "snap_",
            "snap_01",
            "snap_+1",
            "snap_x",
            "7",
            "SNAP_7",
            "snap_99999999999999999999",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
