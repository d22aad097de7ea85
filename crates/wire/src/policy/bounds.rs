//! What an opener may change of a policy.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Policy;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::payload::DebatePriority;

/// How far an opener may change one field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Not at all.
    Fixed,
    /// To a lower number; from true to false; to a lower priority.
    Lower,
    /// To a higher number; from false to true; to a higher priority.
    Higher,
    /// To any value.
    Any,
    /// To a number from the first to the second.
    Within(f64, f64),
}

/// What an opener may change of a policy: the bounds of fields by their names, those of the ladder as `ladder.times.person_ms`.
/// A field that is not named is fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PolicyBounds {
    /// The bounds, by field.
    pub fields: BTreeMap<String, Bound>,
}

/// Nothing that loosens: less time, less to say, closer agreement, more votes that people look at. So nobody outside of the
/// operators gets more of people's time or of the queue, chooses who mediates or says what proved right, passes what nobody
/// reviewed, or runs a case in scaled time.
impl Default for PolicyBounds {
    fn default() -> Self {
        let lower = [
            "finding_timeout_ms",
            "finding_bytes_max",
            "case_timeout_ms",
            "risk_spread_max",
            "number_tolerance",
            "tokens_per_message_max",
            "answer_timeout_ms",
            "hear_answers",
            "set_aside_max",
            "ladder.pass_unreviewed",
            "ladder.priority",
            "ladder.times.acknowledge_ms",
            "ladder.times.evidence_ms",
            "ladder.times.evaluation_ms",
            "ladder.times.opinion_ms",
            "ladder.times.mediation_ms",
            "ladder.times.person_ms",
            "ladder.times.provisional_ms",
        ];
        let higher = ["answers_min", "ladder.vote_margin_min"];
        let lower = lower.map(|field| (field.to_owned(), Bound::Lower));
        let higher = higher.map(|field| (field.to_owned(), Bound::Higher));
        Self {
            fields: lower.into_iter().chain(higher).collect(),
        }
    }
}

impl PolicyBounds {
    /// Checks that `requested` differs from `base` only as far as an opener may change it. Pointers begin with `/policy`.
    pub fn check(&self, base: &Policy, requested: &Policy) -> Result<(), Fault> {
        let (base, requested) = (leaves(base), leaves(requested));
        let fields: BTreeSet<&String> = base.keys().chain(requested.keys()).collect();
        for field in fields {
            let (stands, asked) = (base.get(field), requested.get(field));
            if stands == asked {
                continue;
            }
            let bound = self.bound_of(field);
            if !allows(bound, field, stands, asked) {
                return Err(refused(field, bound, stands));
            }
        }
        Ok(())
    }

    /// The times of each priority have the bounds of the times.
    fn bound_of(&self, field: &str) -> Bound {
        let name = match field.strip_prefix(TIMES_OF) {
            Some(of_priority) => {
                let (_, time) = of_priority.split_once('.').unwrap_or_default();
                format!("ladder.times.{time}")
            }
            None => field.to_owned(),
        };
        self.fields.get(&name).copied().unwrap_or(Bound::Fixed)
    }
}

const TIMES_OF: &str = "ladder.times_by_priority.";

/// The fields of a policy, those of objects by names with dots. The times are those that hold for each priority, wherever they
/// are written.
fn leaves(policy: &Policy) -> BTreeMap<String, Value> {
    // A policy has no map with other than text keys, so writing it cannot fail.
    let mut whole = serde_json::to_value(policy).unwrap_or_default();
    let mut ladder = serde_json::to_value(&policy.ladder).unwrap_or_default();
    let times: serde_json::Map<String, Value> = DebatePriority::ALL
        .into_iter()
        .map(|priority| {
            let times = policy.ladder.times_of(priority);
            (priority.as_str().to_owned(), json!(times))
        })
        .collect();
    if let Some(fields) = ladder.as_object_mut() {
        fields.remove("times");
        fields.insert("times_by_priority".into(), Value::Object(times));
    }
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("hear_answers".into(), json!(policy.hear_answers));
        fields.insert("ladder".into(), ladder);
    }
    let mut leaves = BTreeMap::new();
    collect(&mut leaves, String::new(), whole);
    leaves
}

fn collect(leaves: &mut BTreeMap<String, Value>, name: String, value: Value) {
    let Value::Object(fields) = value else {
        leaves.insert(name, value);
        return;
    };
    for (field, value) in fields {
        let name = if name.is_empty() {
            field
        } else {
            format!("{name}.{field}")
        };
        collect(leaves, name, value);
    }
}

/// Numbers, truth values and priorities have an order; other values have none.
fn rank(field: &str, value: &Value) -> Option<f64> {
    match value {
        Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
        Value::String(name) if field == "ladder.priority" => {
            let mut place = DebatePriority::ALL.iter().rev().zip(0u8..);
            place
                .find(|(priority, _)| priority.as_str() == name)
                .map(|(_, place)| f64::from(place))
        }
        other => other.as_f64(),
    }
}

fn allows(bound: Bound, field: &str, stands: Option<&Value>, asked: Option<&Value>) -> bool {
    if bound == Bound::Any {
        return true;
    }
    let ranks = stands
        .zip(asked)
        .and_then(|(stands, asked)| Some((rank(field, stands)?, rank(field, asked)?)));
    let Some((stands, asked)) = ranks else {
        return false;
    };
    match bound {
        Bound::Fixed => false,
        Bound::Any => true,
        Bound::Lower => asked <= stands,
        Bound::Higher => asked >= stands,
        Bound::Within(low, high) => (low..=high).contains(&asked),
    }
}

fn refused(field: &str, bound: Bound, stands: Option<&Value>) -> Fault {
    let stands = stands.map_or_else(|| "not set".to_owned(), Value::to_string);
    let most = match bound {
        Bound::Fixed | Bound::Any => format!("It is {stands}, and no opener may change it."),
        Bound::Lower => format!("It is {stands}; an opener may only lower it."),
        Bound::Higher => format!("It is {stands}; an opener may only raise it."),
        Bound::Within(low, high) => format!("An opener may set it from {low} to {high}."),
    };
    Fault::new(
        ErrorCode::Unauthorized,
        format!("/policy/{}", field.replace('.', "/")),
        most,
        "Leave the field out, or ask an operator for a policy of its own.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pointer of what is refused of these changes to a preset.
    fn refused_in(bounds: &PolicyBounds, preset: &str, mut changes: Value) -> Option<String> {
        let base = Policy::preset(preset).unwrap();
        changes["preset"] = json!(preset);
        let requested = Policy::resolve(&changes, "/policy").unwrap();
        let fault = bounds.check(&base, &requested).err()?;
        assert_eq!(fault.code, ErrorCode::Unauthorized);
        Some(fault.pointer)
    }

    #[track_caller]
    fn checked(rows: &[(&str, Value, Option<&str>)]) {
        for (preset, changes, refused) in rows {
            assert_eq!(
                refused_in(&PolicyBounds::default(), preset, changes.clone()),
                refused.map(|field| format!("/policy/{field}")),
                "{preset} {changes}"
            );
        }
    }

    const USUAL: &str = "contract-review";

    #[test]
    fn by_default_an_opener_changes_nothing_that_loosens() {
        let ladder = |fields: Value| json!({ "ladder": fields });
        checked(&[
            (USUAL, json!({}), None),
            (USUAL, json!({ "case_timeout_ms": 600_000 }), None),
            (
                USUAL,
                json!({ "case_timeout_ms": 900_001 }),
                Some("case_timeout_ms"),
            ),
            (
                USUAL,
                json!({ "risk_spread_max": 10.0, "answers_min": 3 }),
                None,
            ),
            (
                USUAL,
                json!({ "risk_spread_max": 20.1 }),
                Some("risk_spread_max"),
            ),
            (USUAL, json!({ "hear_answers": false }), None),
            (USUAL, json!({ "rounds_max": 1 }), Some("rounds_max")),
            (USUAL, json!({ "vote_rule": "majority" }), Some("vote_rule")),
            (
                USUAL,
                json!({ "conflict_handling": "ladder" }),
                Some("conflict_handling"),
            ),
            (
                USUAL,
                ladder(json!({ "pass_unreviewed": true })),
                Some("ladder/pass_unreviewed"),
            ),
            (
                USUAL,
                ladder(json!({ "time_scale": 2 })),
                Some("ladder/time_scale"),
            ),
            (
                USUAL,
                ladder(json!({ "mediator": "eve" })),
                Some("ladder/mediator"),
            ),
            (
                USUAL,
                ladder(json!({ "outcome_sources": ["eve"] })),
                Some("ladder/outcome_sources"),
            ),
            (USUAL, ladder(json!({ "priority": "supporting" })), None),
            (
                USUAL,
                ladder(json!({ "priority": "critical-path" })),
                Some("ladder/priority"),
            ),
            ("incident", ladder(json!({ "priority": "valuation" })), None),
            (
                USUAL,
                ladder(json!({ "caution": { "eps": "lowest" } })),
                Some("ladder/caution/eps"),
            ),
        ]);
    }

    #[test]
    fn a_persons_time_is_that_of_each_priority_wherever_it_is_written() {
        const HOUR: u64 = 3_600_000;
        let times = |ms: u64| json!({ "ladder": { "times": { "person_ms": ms } } });
        let of = |priority: &str, ms: u64| json!({ "ladder": { "times_by_priority": { priority: { "person_ms": ms } } } });
        checked(&[
            (USUAL, times(5 * HOUR), None),
            (USUAL, times(7 * HOUR), Some(CRITICAL)),
            (USUAL, of("supporting", 5 * HOUR), None),
            (USUAL, of("supporting", 7 * HOUR), Some(SUPPORTING)),
            ("investment", of("critical-path", 7 * HOUR), Some(CRITICAL)),
            ("investment", times(7 * HOUR), None),
        ]);
    }

    const CRITICAL: &str = "ladder/times_by_priority/critical-path/person_ms";
    const SUPPORTING: &str = "ladder/times_by_priority/supporting/person_ms";

    #[test]
    fn an_operator_may_set_other_bounds() {
        let bounds: PolicyBounds = serde_json::from_value(json!({
            "rounds_max": { "within": [0.0, 3.0] }, "vote_rule": "any", "ladder.times.person_ms": "higher",
        }))
        .unwrap();
        for (changes, refused) in [
            (json!({ "rounds_max": 3, "vote_rule": "majority" }), None),
            (json!({ "rounds_max": 4 }), Some("rounds_max")),
            (
                json!({ "case_timeout_ms": 600_000 }),
                Some("case_timeout_ms"),
            ),
            (
                json!({ "ladder": { "times": { "person_ms": 30_000_000 } } }),
                None,
            ),
        ] {
            assert_eq!(
                refused_in(&bounds, "contract-review", changes.clone()),
                refused.map(|field| format!("/policy/{field}")),
                "{changes}"
            );
        }
    }

    #[test]
    fn another_preset_is_no_change_of_this_one() {
        let bounds = PolicyBounds::default();
        let fault = bounds.check(&Policy::contract_review(), &Policy::quick());
        assert!(fault.is_err());
    }

    #[test]
    fn every_field_with_a_bound_is_one_of_a_policy() {
        let known = leaves(&Policy::investment());
        for field in PolicyBounds::default().fields.keys() {
            let of_priority = field.replace("ladder.times.", "ladder.times_by_priority.valuation.");
            assert!(known.contains_key(&of_priority), "{field}");
        }
    }
}
