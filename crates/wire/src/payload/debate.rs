//! What the facilitator asks and what the parties answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::check_confidence;
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, DebateId, Token};
use crate::payload::{Conflict, ConflictType, DebateTerms, Position, PrecedentGuidance};
use crate::policy::Policy;
use crate::timestamp::Timestamp;

/// Parameters of the request `open_debate`, from the conflict detector to the facilitator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenDebate {
    /// The case the conflict belongs to.
    pub case_id: CaseId,
    /// The conflict to settle.
    pub conflict: Conflict,
    /// The case's policy, frozen.
    pub policy: Policy,
    /// The terms of the ladder for this debate.
    #[serde(default, skip_serializing_if = "DebateTerms::is_usual")]
    pub terms: DebateTerms,
}

/// Deepest nesting of an answer's value. It is stored in events deeper inside than in the message, and what can be read
/// in a message must be readable there: readers of JSON stop at 128.
const VALUE_LEVELS_MAX: usize = 32;

/// Whether a value has more levels of arrays and objects than `max`.
fn is_deeper_than(value: &Value, max: usize) -> bool {
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => return false,
    };
    max == 0
        || inner
            .into_iter()
            .any(|value| is_deeper_than(value, max - 1))
}

/// The conflict as a party is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictView {
    /// Identity of the conflict.
    pub conflict_id: DebateId,
    /// The type of the conflict.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// The disputed subject, for people to read.
    pub topic: String,
    /// The disputed subject, for programs: as in the conflict.
    pub subject: String,
}

/// Limits an answer must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DebateLimits {
    /// Most tokens of an answer, estimated at four bytes a token.
    pub max_tokens: u32,
}

/// The payload of `question` in a debate: asks one party to keep, change or give up its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The debate; copy it into the answer's `correlation_id`, or answer with `reply_to`.
    pub debate_id: DebateId,
    /// The case.
    pub case_id: CaseId,
    /// The conflict.
    pub conflict: ConflictView,
    /// The number of this round, from 1.
    pub round: u32,
    /// The number of the last round.
    pub max_rounds: u32,
    /// The position of the asked agent.
    pub your_position: Position,
    /// The positions of the others.
    pub other_positions: Vec<Position>,
    /// What earlier debates like this one say about it; in the first round, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<PrecedentGuidance>>,
    /// Where a reviewer has the dispute debated again: what the parties did not know before, in the reviewer's words; in each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
    /// The analyses of the case that rest on what is disputed, those first that use it; in the first round, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// The limits that the answer must keep.
    pub limits: DebateLimits,
    /// The time until which an answer counts.
    pub deadline: Timestamp,
    /// The message types that count as an answer.
    pub reply_with: Vec<Token>,
}

/// The payload of `agreement`, `disagreement` and `revision`: what a party answers, and what the other parties are told of
/// it. What they are told waits for no answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The position now held, in words. May be left out when it is that of the peer agreed with, or unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised_position: Option<String>,
    /// The position now held, as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How sure the agent is now, 0 to 1; the metadata's confidence, or the earlier one, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// Whether the agent now agrees with a peer. Follows from the message type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with_peer: Option<bool>,
    /// The peer it agrees with, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_with: Option<AgentId>,
    /// The reasoning, in brief.
    #[serde(default)]
    pub reasoning: String,
    /// The evidence for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The party that has answered, where the facilitator tells it to the others. A party need not name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentId>,
}

impl Answer {
    /// Checks ranges; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self
            .value
            .as_ref()
            .is_some_and(|value| is_deeper_than(value, VALUE_LEVELS_MAX))
        {
            return Err(Fault::invalid(
                "/payload/value",
                format!("The value is nested more than {VALUE_LEVELS_MAX} deep."),
                "Give a plain value: a number, a boolean, a text, or an object of those.",
            ));
        }
        self.confidence.map_or(Ok(()), |confidence| {
            check_confidence("/payload/confidence", confidence)
        })
    }

    /// Tokens of the answer's words and value, estimated at four bytes a token as is usual for English.
    pub fn estimated_tokens(&self) -> usize {
        let words = self.revised_position.as_deref().map_or(0, str::len) + self.reasoning.len();
        // Without the value, an answer of few words could still be too large for the events that repeat it.
        let value = self
            .value
            .as_ref()
            .map_or(0, |value| value.to_string().len());
        (words + value + self.evidence.iter().map(String::len).sum::<usize>()).div_ceil(4)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, level| {
            if level % 2 == 0 {
                json!([inner])
            } else {
                json!({ "a": inner })
            }
        })
    }

    #[test]
    fn a_value_that_facts_could_not_hold_is_refused() {
        for (levels, good) in [
            (0, true),
            (1, true),
            (VALUE_LEVELS_MAX, true),
            (VALUE_LEVELS_MAX + 1, false),
            (100, false),
        ] {
            let answer: Answer =
                serde_json::from_value(json!({ "value": nested(levels) })).unwrap();
            let checked = answer.check().map_err(|fault| fault.pointer);
            assert_eq!(
                checked,
                if good {
                    Ok(())
                } else {
                    Err("/payload/value".to_owned())
                },
                "{levels}"
            );
        }
    }

    #[test]
    fn the_value_counts_as_words_do() {
        let tokens = |answer| {
            serde_json::from_value::<Answer>(answer)
                .unwrap()
                .estimated_tokens()
        };
        assert_eq!(tokens(json!({ "reasoning": "x".repeat(40) })), 10);
        assert_eq!(tokens(json!({ "value": "x".repeat(38) })), 10);
    }
}
