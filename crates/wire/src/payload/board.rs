//! The board of a case: named entries that everybody in the case reads, and writes knowing what stood there before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check_name;
use crate::envelope::check_confidence;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;
use crate::timestamp::Timestamp;

/// The action of a request to the coordinator that writes an entry of the case's board; the parameters are a [`PutEntry`].
pub const BOARD_PUT: &str = "board_put";
/// Most bytes of the value of an entry, as JSON.
pub const ENTRY_BYTES_MAX: usize = 65_536;

/// The parameters of `board_put`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutEntry {
    /// The name of the entry.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The version that the sender has read; 0 for an entry that is new. It is refused where another one stands there by then.
    pub based_on: u64,
    /// The value, any JSON of at most 64 KiB. `null` empties the entry, and its name and versions remain.
    pub value: Value,
    /// How sure the sender is, 0 to 1; that of the envelope where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
}

impl PutEntry {
    /// Checks the form; `pointer` is where the parameters stand.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        let name = format!("{pointer}/name");
        if self.name.trim().is_empty() {
            return Err(Fault::invalid(
                name,
                "It is blank.",
                "Name the entry, for example \"open questions\".",
            ));
        }
        check_name(&name, &self.name)?;
        if let Some(confidence) = self.confidence {
            check_confidence(&format!("{pointer}/confidence"), confidence)?;
        }
        let bytes = self.bytes();
        if bytes <= ENTRY_BYTES_MAX {
            return Ok(());
        }
        Err(Fault::new(
            ErrorCode::CapacityExceeded,
            format!("{pointer}/value"),
            format!("The value has {bytes} bytes; an entry has at most {ENTRY_BYTES_MAX}."),
            "Write a summary, and send the whole to whoever needs it.",
        ))
    }

    /// The bytes of the value as JSON.
    pub fn bytes(&self) -> usize {
        self.value.to_string().len()
    }
}

/// An entry of a board without its value: what there is to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardListing {
    /// Its name.
    pub name: String,
    /// Its version, from 1.
    pub version: u64,
    /// The one who wrote this version.
    pub author: AgentId,
    /// How sure the author is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The time at which it was written.
    pub at: Timestamp,
    /// The bytes of its value as JSON.
    pub bytes: u64,
}

/// An entry of a board as the coordinator shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardEntry {
    /// What is known of it.
    #[serde(flatten)]
    pub listing: BoardListing,
    /// Its value.
    pub value: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_has_a_name_and_a_value_within_bounds() {
        let put = |fields: Value| serde_json::from_value::<PutEntry>(fields).unwrap();
        let good = json!({ "name": "n", "based_on": 0, "value": 1 });
        assert_eq!(put(good.clone()).check("/p"), Ok(()));
        for (name, value, pointer) in [
            ("name", json!(" "), "/p/name"),
            ("name", json!("n".repeat(300)), "/p/name"),
            ("value", json!("v".repeat(1 << 20)), "/p/value"),
            ("confidence", json!(1.5), "/p/confidence"),
        ] {
            let mut fields = good.clone();
            fields[name] = value;
            assert_eq!(put(fields).check("/p").unwrap_err().pointer, pointer);
        }
        let unknown = json!({ "name": "n", "based_on": 0, "value": 1, "version": 1 });
        assert!(serde_json::from_value::<PutEntry>(unknown).is_err());
    }
}
