//! How debates turned out, for those who have to judge one like them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::id::DebateId;
use crate::payload::track_record::{Circumstances, Interval};
use crate::payload::{ConflictType, check_name};
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
    /// What it was about, as precedents are compared; absent in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matter: Option<PrecedentMatter>,
    /// What proved right afterwards, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved: Option<ProvedPosition>,
}

/// What a debate is about, as far as precedents are compared by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrecedentMatter {
    /// The type of the conflict.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// The disputed subject, for a program: topic, clause type, `subject/attribute`, or metric.
    pub subject: String,
    /// The name of the policy of the case.
    pub policy: String,
    /// The domain, where the debate has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The circumstances in which the case was judged.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
}

/// Which of several estimates is meant.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSide {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
}

impl EstimateSide {
    /// The side as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }
}

/// What proved right after a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedPosition {
    /// What proved right, in words.
    pub position: String,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether it is the position that was chosen.
    pub was_chosen: bool,
    /// Whether what was chosen are words that state no value, so that nobody can say whether they were right; left out where they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_undecided: bool,
    /// Whether the lowest or the highest of the disputed numbers was nearer to it; absent where there were no numbers, or both were as near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<EstimateSide>,
    /// How that is known: the lesson.
    pub explanation: String,
}

impl ProvedPosition {
    /// Whether what was chosen proved right; `None` where nobody can say so.
    pub fn was_right(&self) -> Option<bool> {
        (!self.is_undecided).then_some(self.was_chosen)
    }
}

/// How often something proved right, of how many times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuccessRate {
    /// How often it proved right.
    pub right: u32,
    /// Of how many debates of which the outcome is known.
    pub known: u32,
    /// 95 % interval of the rate (Wilson); 0 to 1 where nothing is known.
    pub interval: Interval,
}

impl SuccessRate {
    /// How often it proved right, 0 to 1; `None` where nothing is known.
    pub fn share(&self) -> Option<f64> {
        (self.known > 0).then(|| f64::from(self.right) / f64::from(self.known))
    }
}

/// How often a position that is held in a debate proved right in debates like it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionRate {
    /// The position in words.
    pub position: String,
    /// How often it proved right.
    pub rate: SuccessRate,
}

/// What earlier debates say about one like them: how likely each side is to prove right, and how far that can be relied on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrecedentGuidance {
    /// How many earlier debates like it there are.
    pub found: u32,
    /// How often the position that was chosen proved right.
    pub chosen: SuccessRate,
    /// How often the lower of several numbers proved right; absent where this debate is not about numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<SuccessRate>,
    /// How often each position of this debate proved right.
    pub positions: Vec<PositionRate>,
    /// What this debate has in common with the earlier ones.
    pub conditions: Vec<String>,
    /// Why it may turn out otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
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
