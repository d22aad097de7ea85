//! What an agent says about earlier cases like the one that it judges, and how that compares with what is known here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;
use crate::payload::track_record::Interval;
use crate::payload::{SuccessRate, null_is_absent};

/// Most similar patterns that one message names.
pub const SIMILAR_PATTERNS_MAX: usize = 20;
/// Most bytes of one of them as JSON.
const PATTERN_BYTES_MAX: usize = 512;

/// What an agent says about earlier cases. Everything is optional, and nothing of it is believed: it is shown beside what is known here.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoricalContext {
    /// Earlier cases, with their outcomes, in fields of the agent's own.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = SIMILAR_PATTERNS_MAX))]
    pub similar_patterns: Vec<BTreeMap<String, Value>>,
    /// How often what it concludes proved right in them, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pattern_success_rate: Option<f64>,
    /// Of how many cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<u32>,
    /// Confidence interval of that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_interval: Option<Interval>,
    /// How often the agent itself was right in them, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub my_accuracy_on_pattern: Option<f64>,
}

impl HistoricalContext {
    /// Checks ranges and lengths; `pointer` is where it stands in its message.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        let rates = [
            ("pattern_success_rate", self.pattern_success_rate),
            ("my_accuracy_on_pattern", self.my_accuracy_on_pattern),
            (
                "confidence_interval/low",
                self.confidence_interval.map(|one| one.low),
            ),
            (
                "confidence_interval/high",
                self.confidence_interval.map(|one| one.high),
            ),
        ];
        for (field, rate) in rates {
            if let Some(rate) = rate.filter(|rate| !(0.0..=1.0).contains(rate)) {
                return Err(Fault::invalid(
                    format!("{pointer}/{field}"),
                    format!("The rate is {rate}."),
                    "Give a number from 0 to 1, for example 0.72.",
                ));
            }
        }
        let too_many = self.similar_patterns.len() > SIMILAR_PATTERNS_MAX;
        let bytes = |pattern: &BTreeMap<String, Value>| {
            serde_json::to_vec(pattern).map_or(0, |json| json.len())
        };
        if too_many
            || self
                .similar_patterns
                .iter()
                .any(|one| bytes(one) > PATTERN_BYTES_MAX)
        {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                format!("{pointer}/similar_patterns"),
                format!(
                    "At most {SIMILAR_PATTERNS_MAX} patterns of {PATTERN_BYTES_MAX} bytes each are accepted."
                ),
                "Name those that are most like this case, and say the rest in `observations`.",
            ));
        }
        Ok(())
    }
}

/// What an agent claims about earlier cases, beside what is known here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrecedentClaim {
    /// The agent.
    pub agent_id: AgentId,
    /// The success rate that it claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_rate: Option<f64>,
    /// Of how many cases, as it claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_observations: Option<u32>,
    /// How often its position proved right in debates like this one here.
    pub known: SuccessRate,
    /// The accuracy that it claims for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_accuracy: Option<f64>,
    /// Its credibility by its track record; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credibility: Option<f64>,
    /// Whether a claimed number lies outside the 95 % interval of what is known here.
    pub is_far_outside: bool,
    /// In a sentence.
    pub remark: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_rate_and_too_much_is_refused_at_its_place() {
        let long = json!({ "outcome": "x".repeat(PATTERN_BYTES_MAX) });
        let context = "/payload/historical_context";
        for (given, pointer) in [
            (json!({}), None),
            (
                json!({ "similar_patterns": [{ "company": "MSFT", "year": 2016 }], "pattern_success_rate": 0.72 }),
                None,
            ),
            (
                json!({ "pattern_success_rate": 72 }),
                Some("pattern_success_rate"),
            ),
            (
                json!({ "my_accuracy_on_pattern": -0.1 }),
                Some("my_accuracy_on_pattern"),
            ),
            (
                json!({ "confidence_interval": { "low": 0.1, "high": 1.5 } }),
                Some("confidence_interval/high"),
            ),
            (
                json!({ "similar_patterns": vec![json!({}); SIMILAR_PATTERNS_MAX + 1] }),
                Some("similar_patterns"),
            ),
            (
                json!({ "similar_patterns": [long] }),
                Some("similar_patterns"),
            ),
        ] {
            let read: HistoricalContext = serde_json::from_value(given.clone()).unwrap();
            let found = read.check(context).err().map(|fault| fault.pointer);
            let expected = pointer.map(|field| format!("{context}/{field}"));
            assert_eq!(found, expected, "{given}");
        }
    }
}
