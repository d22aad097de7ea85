//! What the facilitator asks and what the parties answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::envelope::{check_confidence, from_json};
use crate::fault::Fault;
use crate::id::{AgentId, CaseId, DebateId, Token};
use crate::payload::{
    Conflict, ConflictType, DebateTerms, Position, PrecedentGuidance, null_is_absent, shortened,
};
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
    #[serde(default, deserialize_with = "null_is_absent")]
    pub reasoning: String,
    /// The evidence for it.
    #[serde(
        default,
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub evidence: Vec<String>,
    /// The party that has answered, where the facilitator tells it to the others. A party need not name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentId>,
}

/// The fields of an [`Answer`] by which a party says something.
const ANSWER_FIELDS: [&str; 7] = [
    "revised_position",
    "value",
    "agrees_with_peer",
    "agrees_with",
    "confidence",
    "reasoning",
    "evidence",
];

impl Answer {
    /// Reads an answer and checks it; pointers begin with `/payload`. A position that is written as a number, as language models do, is the
    /// value that is now held. Without any field that an answer has, what it says would be lost; nothing at all keeps the position.
    pub fn read(payload: &RawValue) -> Result<Self, Fault> {
        let mut fields: BTreeMap<String, Box<RawValue>> =
            from_json(payload.get().as_bytes(), "/payload")?;
        let is_known = |name: &String| ANSWER_FIELDS.contains(&name.as_str());
        if !fields.is_empty() && !fields.keys().any(is_known) {
            return Err(no_answer(&fields));
        }
        let is_number = |position: &RawValue| {
            let text = position.get();
            text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        };
        let answer: Self = match fields
            .remove("revised_position")
            .filter(|position| is_number(position))
        {
            None => from_json(payload.get().as_bytes(), "/payload")?,
            Some(number) => from_json(&with_number(fields, number), "/payload")?,
        };
        answer.check()?;
        Ok(answer)
    }

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

/// An answer's fields with a position that was written as a number.
fn with_number(mut fields: BTreeMap<String, Box<RawValue>>, number: Box<RawValue>) -> Vec<u8> {
    let has_value = fields
        .get("value")
        .is_some_and(|value| value.get() != "null");
    // Beside a value it is the words, which must state the same.
    let words = has_value.then(|| to_raw_value(number.get()).ok()).flatten();
    match words {
        Some(words) => fields.insert("revised_position".to_owned(), words),
        None => fields.insert("value".to_owned(), number),
    };
    serde_json::to_vec(&fields).unwrap_or_default()
}

fn no_answer(fields: &BTreeMap<String, Box<RawValue>>) -> Fault {
    let stated: Vec<&str> = fields.keys().map(String::as_str).collect();
    Fault::invalid(
        "/payload",
        format!(
            "No field of an answer is in it; it has {}.",
            shortened(&stated.join(", "))
        ),
        format!(
            "Give at least one of {}; or an empty object, which keeps the position.",
            ANSWER_FIELDS.join(", ")
        ),
    )
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

    fn read(payload: Value) -> Result<Answer, Fault> {
        Answer::read(&to_raw_value(&payload).unwrap())
    }

    #[test]
    fn a_position_that_is_a_number_is_the_value() {
        for (payload, words, value) in [
            (json!({ "revised_position": 80 }), None, Some(json!(80))),
            (
                json!({ "revised_position": -0.5, "value": null }),
                None,
                Some(json!(-0.5)),
            ),
            (
                json!({ "revised_position": 80, "value": 80.0 }),
                Some("80"),
                Some(json!(80.0)),
            ),
            (json!({ "revised_position": "80" }), Some("80"), None),
        ] {
            let answer = read(payload.clone()).unwrap();
            let said = (answer.revised_position.as_deref(), answer.value);
            assert_eq!(said, (words, value), "{payload}");
        }
        let fault = read(json!({ "revised_position": ["80"] })).unwrap_err();
        assert_eq!(fault.pointer, "/payload/revised_position");
    }

    #[test]
    fn null_is_an_absent_field() {
        for field in ANSWER_FIELDS {
            let answer = read(json!({ field: null })).unwrap();
            assert_eq!(answer, Answer::default(), "{field}");
        }
    }

    #[test]
    fn an_answer_without_a_field_of_an_answer_is_refused() {
        for payload in [
            json!({ "position": "reject" }),
            json!({ "status": "success", "result": {} }),
            json!({ "content": ["reject"] }),
        ] {
            let fault = read(payload.clone()).unwrap_err();
            assert_eq!(fault.pointer, "/payload", "{payload}");
            assert!(fault.advice.contains("revised_position, value"), "{fault}");
        }
        assert_eq!(read(json!({})).unwrap(), Answer::default());
        let with_more = read(json!({ "reasoning": "ok", "position": "reject" })).unwrap();
        assert_eq!(with_more.reasoning, "ok");
    }

    #[test]
    fn each_field_of_an_answer_is_known() {
        let whole = json!({
            "revised_position": "a", "value": 1, "confidence": 0.5, "agrees_with_peer": true, "agrees_with": "bob",
            "reasoning": "b", "evidence": ["c"],
        });
        let answer = serde_json::to_value(read(whole).unwrap()).unwrap();
        let mut written: Vec<&str> = answer
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut known = ANSWER_FIELDS;
        written.sort_unstable();
        known.sort_unstable();
        assert_eq!(written, known);
    }
}
