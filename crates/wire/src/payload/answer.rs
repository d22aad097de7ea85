//! What a party of a debate answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::envelope::{check_confidence, from_json};
use crate::fault::Fault;
use crate::id::AgentId;
use crate::payload::{null_is_absent, shortened};

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

const REVISED: &str = "revised_position";
/// What a position is called elsewhere, as in the conflicts of specification 1.
const POSITION: &str = "position";
/// The fields of an [`Answer`] by which a party says something.
const ANSWER_FIELDS: [&str; 7] = [
    REVISED,
    "value",
    "agrees_with_peer",
    "agrees_with",
    "confidence",
    "reasoning",
    "evidence",
];

impl Answer {
    /// Reads an answer and checks it; pointers begin with `/payload`. A position that is written as a number, as language models do, is the
    /// value that is now held, and one that is called as in a finding or a conflict (`position`) is the revised one where no other is stated.
    /// Without any field that an answer has, what it says would be lost; nothing at all keeps the position.
    pub fn read(payload: &RawValue) -> Result<Self, Fault> {
        Self::of_fields(fields_of(payload)?)
    }

    /// Reads a `revision` in the same way. One that says something, and not what is revised, is refused: it would count as holding the
    /// position. What is revised may be the confidence, which the metadata may have, or the evidence.
    pub fn read_revision(payload: &RawValue, metadata: Option<f64>) -> Result<Self, Fault> {
        let fields = fields_of(payload)?;
        let unknown = fields.keys().filter(|name| !is_known(name));
        let unknown: Vec<String> = unknown.cloned().collect();
        let answer = Self::of_fields(fields)?;
        let has_position = answer.revised_position.is_some()
            || answer.value.is_some()
            || answer.agrees_with.is_some()
            || answer.agrees_with_peer.is_some();
        let has_more = !answer.evidence.is_empty() || answer.confidence.or(metadata).is_some();
        let says_nothing = unknown.is_empty() && answer.reasoning.is_empty();
        if has_position || says_nothing || (unknown.is_empty() && has_more) {
            return Ok(answer);
        }
        Err(no_revision(&unknown))
    }

    fn of_fields(mut fields: BTreeMap<String, Box<RawValue>>) -> Result<Self, Fault> {
        if !fields.is_empty() && !fields.keys().any(|name| is_known(name)) {
            return Err(no_answer(&fields));
        }
        let position = fields.remove(REVISED);
        let fields = match position {
            Some(number) if is_number(&number) => with_number(fields, number),
            Some(words) => {
                fields.insert(REVISED.to_owned(), words);
                fields
            }
            None => fields,
        };
        let bytes = serde_json::to_vec(&fields).unwrap_or_default();
        let answer: Self = from_json(&bytes, "/payload")?;
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

fn is_known(name: &str) -> bool {
    ANSWER_FIELDS.contains(&name)
}

fn is_number(position: &RawValue) -> bool {
    let text = position.get();
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// An answer's fields, with the position under the name that it has in an answer.
fn fields_of(payload: &RawValue) -> Result<BTreeMap<String, Box<RawValue>>, Fault> {
    let mut fields: BTreeMap<String, Box<RawValue>> =
        from_json(payload.get().as_bytes(), "/payload")?;
    let is_stated = fields.get(REVISED).is_some_and(|one| one.get() != "null");
    let is_position = |one: &RawValue| one.get().starts_with('"') || is_number(one);
    if !is_stated && fields.get(POSITION).is_some_and(|one| is_position(one)) {
        let position = fields.remove(POSITION);
        fields.extend(position.map(|position| (REVISED.to_owned(), position)));
    }
    Ok(fields)
}

/// An answer's fields with a position that was written as a number.
fn with_number(
    mut fields: BTreeMap<String, Box<RawValue>>,
    number: Box<RawValue>,
) -> BTreeMap<String, Box<RawValue>> {
    let has_value = fields
        .get("value")
        .is_some_and(|value| value.get() != "null");
    // Beside a value it is the words, which must state the same.
    let words = has_value.then(|| to_raw_value(number.get()).ok()).flatten();
    match words {
        Some(words) => fields.insert(REVISED.to_owned(), words),
        None => fields.insert("value".to_owned(), number),
    };
    fields
}

fn no_revision(unknown: &[String]) -> Fault {
    let has = match unknown {
        [] => String::new(),
        _ => format!(
            "; what an answer does not have is {}",
            shortened(&unknown.join(", "))
        ),
    };
    Fault::invalid(
        "/payload",
        format!("The revision does not say what is revised{has}."),
        "Give revised_position or value; or agrees_with_peer, to hold the position of a peer. Whoever keeps theirs sends a disagreement.",
    )
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
            json!({ "position": { "value": 80 } }),
            json!({ "status": "success", "result": {} }),
            json!({ "content": ["reject"] }),
        ] {
            let fault = read(payload.clone()).unwrap_err();
            assert_eq!(fault.pointer, "/payload", "{payload}");
            assert!(fault.advice.contains("revised_position, value"), "{fault}");
        }
        assert_eq!(read(json!({})).unwrap(), Answer::default());
        let with_more = read(json!({ "reasoning": "ok", "stance": "reject" })).unwrap();
        assert_eq!(with_more.reasoning, "ok");
    }

    #[test]
    fn what_is_called_position_is_the_revised_one_where_no_other_is_stated() {
        for (payload, words, value) in [
            (json!({ "position": "reject" }), Some("reject"), None),
            (
                json!({ "position": "reject", "reasoning": "ok", "revised_position": null }),
                Some("reject"),
                None,
            ),
            (json!({ "position": 80 }), None, Some(json!(80))),
            (
                json!({ "position": 80, "value": 80 }),
                Some("80"),
                Some(json!(80)),
            ),
            (
                json!({ "position": "sign", "revised_position": "reject" }),
                Some("reject"),
                None,
            ),
            (json!({ "position": null, "reasoning": "ok" }), None, None),
        ] {
            let answer = read(payload.clone()).unwrap();
            let said = (answer.revised_position.as_deref(), answer.value);
            assert_eq!(said, (words, value), "{payload}");
        }
    }

    #[test]
    fn a_revision_says_what_is_revised() {
        for (payload, metadata, good) in [
            (json!({}), None, true),
            (json!({ "position": "reject" }), None, true),
            (
                json!({ "revised_position": "reject", "mood": 1 }),
                None,
                true,
            ),
            (json!({ "value": 80 }), None, true),
            (json!({ "agrees_with_peer": false }), None, true),
            (json!({ "agrees_with": "bob" }), None, true),
            (
                json!({ "reasoning": "Surer.", "confidence": 0.9 }),
                None,
                true,
            ),
            (json!({ "reasoning": "Surer." }), Some(0.9), true),
            (json!({ "evidence": ["p. 7"] }), None, true),
            (json!({ "reasoning": "I was wrong." }), None, false),
            (
                json!({ "reasoning": "ok", "stance": "reject" }),
                None,
                false,
            ),
            (
                json!({ "confidence": 0.9, "stance": "reject" }),
                None,
                false,
            ),
            (json!({ "confidence": 0.9, "position": [80] }), None, false),
            (json!({ "stance": "reject" }), Some(0.9), false),
        ] {
            let revision = to_raw_value(&payload).unwrap();
            let read = Answer::read_revision(&revision, metadata);
            assert_eq!(read.is_ok(), good, "{payload}: {read:?}");
            let Err(fault) = read else { continue };
            assert_eq!(fault.pointer, "/payload", "{payload}");
            let names = payload.get("stance").is_none() || fault.message.contains("stance");
            assert!(names, "{fault}");
        }
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
