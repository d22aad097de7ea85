//! What proved right in the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::id::{AgentId, DebateId};
use crate::payload::challenge::check_text;
use crate::payload::track_record::Circumstances;
use crate::timestamp::Timestamp;

/// The payload of `outcome`: what proved right of what was debated. Sent to the debate facilitator, in the case; it
/// enters the track records of everyone who held a position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeReport {
    /// The debate. It must be resolved: before that, what is known is evidence in it.
    pub debate_id: DebateId,
    /// The party whose position proved right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<AgentId>,
    /// What proved right, in words, in place of `held_by`. It may be what nobody held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How that is known, so that others can look it up.
    pub explanation: String,
    /// The time at which it became known; now when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// In which circumstances, where they were others than those that the case states.
    #[serde(default, skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
}

impl OutcomeReport {
    /// Checks that it says one thing, in words that fit; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        check_text("/payload/explanation", &self.explanation)?;
        self.circumstances.check("/payload/circumstances")?;
        match (&self.held_by, &self.position) {
            (Some(_), None) => Ok(()),
            (None, Some(position)) => check_text("/payload/position", position),
            _ => Err(Fault::invalid(
                "/payload/held_by",
                "An outcome names either the party whose position proved right or what proved right.",
                "Give held_by, an agent of the debate, or position in words (with value, where there is one), not both.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_says_one_thing_and_how_it_is_known() {
        let base = json!({ "debate_id": "d-1", "explanation": "the filing of March" });
        for (more, pointer) in [
            (json!({ "held_by": "vera" }), None),
            (json!({ "position": "a target of 90", "value": 90 }), None),
            (json!({}), Some("/payload/held_by")),
            (
                json!({ "held_by": "vera", "position": "90" }),
                Some("/payload/held_by"),
            ),
            (json!({ "position": " " }), Some("/payload/position")),
            (
                json!({ "held_by": "vera", "explanation": "" }),
                Some("/payload/explanation"),
            ),
            (
                json!({ "held_by": "vera", "circumstances": { "regime": "x".repeat(300) } }),
                Some("/payload/circumstances/regime"),
            ),
            (
                json!({ "held_by": "vera", "circumstances": { "context": { "sector": "x".repeat(300) } } }),
                Some("/payload/circumstances/context/sector"),
            ),
        ] {
            let mut whole = base.as_object().unwrap().clone();
            whole.extend(more.as_object().unwrap().clone());
            let report: OutcomeReport = serde_json::from_value(whole.into()).unwrap();
            assert_eq!(
                report.check().err().map(|fault| fault.pointer),
                pointer.map(Into::into),
                "{more}"
            );
        }
    }
}

/// Whether one party was right, as it proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedParty {
    /// The party.
    pub agent_id: AgentId,
    /// Whether it held what proved right.
    pub correct: bool,
}
