//! How a debate turned out, for those who have to judge one like it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::id::DebateId;
use crate::payload::check_name;
use crate::timestamp::Timestamp;

/// The five levels at which a debate can end, from the agents themselves to a gate.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=5;

/// How a debate turned out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Precedent {
    /// The debate.
    pub debate_id: DebateId,
    /// What was disputed, for a reader. A text that ends in `… [shortened]` is the beginning of the debate's own.
    pub topic: String,
    /// The position that was chosen, in words; shortened like the topic, and empty where none was.
    pub position: String,
    /// At which level it ended, 1 to 5.
    #[schemars(range(min = 1, max = 5))]
    pub level: u8,
    /// How it ended, as a name, for example `vote`.
    #[schemars(regex(pattern = r"\S"))]
    pub status: String,
    /// The time at which it ended.
    pub at: Timestamp,
}

impl Precedent {
    /// Checks what the type cannot express; `pointer` is where the precedent stands in its message.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        if !LEVELS.contains(&self.level) {
            return Err(Fault::invalid(
                format!("{pointer}/level"),
                format!("The level is {}.", self.level),
                "Give a number from 1 to 5.",
            ));
        }
        if self.status.trim().is_empty() {
            return Err(Fault::invalid(
                format!("{pointer}/status"),
                "It is not said how the debate ended.",
                "Name it, for example \"vote\".",
            ));
        }
        check_name(&format!("{pointer}/status"), &self.status)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::payload::NAME_BYTES_MAX;

    #[test]
    fn what_is_no_level_and_no_status_is_refused_at_its_place() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (level, status, pointer) in [
            (1, "discussion", None),
            (5, "overridden", None),
            (0, "vote", Some("/payload/precedent/level")),
            (6, "vote", Some("/payload/precedent/level")),
            (3, " ", Some("/payload/precedent/status")),
            (3, &long, Some("/payload/precedent/status")),
        ] {
            let written = json!({"debate_id": "d-1", "topic": "", "position": "", "level": level, "status": status,
                "at": "2026-01-01T00:00:00Z"});
            let precedent: Precedent = serde_json::from_value(written).unwrap();
            let found = precedent
                .check("/payload/precedent")
                .err()
                .map(|fault| fault.pointer);
            assert_eq!(found.as_deref(), pointer, "{level} {status:?}");
        }
    }
}
