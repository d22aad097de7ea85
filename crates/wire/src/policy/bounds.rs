//! What an opener may change of a policy.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Policy;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::payload::{DebatePriority, check_name};

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
/// The name of an object stands for every field in it that has no bound of its own, and `*` for all that are not named; a field
/// without any bound is fixed.
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
            "estimates.tolerance.relative",
            "estimates.tolerance.absolute",
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
        let higher = [
            "answers_min",
            "estimates.compared",
            "ladder.vote_margin_min",
            "ladder.signed",
            "ladder.digest_required",
        ];
        let lower = lower.map(|field| (field.to_owned(), Bound::Lower));
        let higher = higher.map(|field| (field.to_owned(), Bound::Higher));
        Self {
            fields: lower.into_iter().chain(higher).collect(),
        }
    }
}

impl PolicyBounds {
    /// Checks that `requested` differs from `base` only as far as an opener may change it. `pointer` is where the policy stands,
    /// for the fault.
    pub fn check(&self, base: &Policy, requested: &Policy, pointer: &str) -> Result<(), Fault> {
        let (base, requested) = (leaves(base), leaves(requested));
        let fields: BTreeSet<&String> = base.keys().chain(requested.keys()).collect();
        for field in fields {
            let (stands, asked) = (base.get(field), requested.get(field));
            if stands == asked {
                continue;
            }
            let bound = self.bound_of(field);
            if !allows(bound, field, stands, asked) {
                return Err(refused(pointer, field, bound, stands));
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
        let mut name = name.as_str();
        loop {
            if let Some(bound) = self.fields.get(name) {
                return *bound;
            }
            let Some((above, _)) = name.rsplit_once('.') else {
                let others = self.fields.get(ALL_OTHERS);
                return others.copied().unwrap_or(Bound::Fixed);
            };
            name = above;
        }
    }

    /// The names under which some field has another bound in `other`, with the bound here and there. The bound of an object is that
    /// of its fields, so one that says the same of every field in another place is no difference.
    pub fn differences(&self, other: &Self) -> Vec<(String, Bound, Bound)> {
        let differ = |field: &str| self.bound_of(field) != other.bound_of(field);
        let known = known_fields();
        let names: BTreeSet<&String> = self.fields.keys().chain(other.fields.keys()).collect();
        let named = names.into_iter().filter(|name| {
            let inner = format!("{name}.");
            let mut within = known
                .iter()
                .filter(|field| field.starts_with(&inner))
                .peekable();
            // What is no object stands for itself, and so does the name for all others.
            let is_one = within.peek().is_none();
            differ(name) && (is_one || within.any(|field| differ(field)))
        });
        named
            .map(|name| (name.clone(), self.bound_of(name), other.bound_of(name)))
            .collect()
    }

    /// Checks that every bound is one of a field of policies, and can be kept. `pointer` is where the bounds stand.
    pub fn check_fields(&self, pointer: &str) -> Result<(), Fault> {
        if self.fields.len() > FIELDS_MAX {
            return Err(Fault::invalid(
                pointer,
                format!("There are {} bounds.", self.fields.len()),
                format!("Give at most {FIELDS_MAX}; the name of an object stands for its fields."),
            ));
        }
        let known = known_fields();
        for (field, bound) in &self.fields {
            let pointer = format!("{pointer}/{field}");
            let inner = format!("{field}.");
            // A rule of caution is one field for each metric, and so is a tolerance.
            let of_metric = field
                .strip_prefix("ladder.caution.")
                .or_else(|| field.strip_prefix("estimates.by_metric."));
            let is_known = field == ALL_OTHERS
                || of_metric.is_some_and(|metric| {
                    !metric.is_empty() && check_name(&pointer, metric).is_ok()
                })
                || known
                    .iter()
                    .any(|one| one == field || one.starts_with(&inner));
            if !is_known {
                return Err(Fault::invalid(
                    pointer,
                    format!(
                        "{:?} is no field of a policy.",
                        crate::payload::shortened(field)
                    ),
                    "Name a field as proto-schemas/open_case.schema.json has it, with a dot before a field of the ladder: ladder.queue_max.",
                ));
            }
            if let Bound::Within(low, high) = bound
                && !(low.is_finite() && high.is_finite() && low <= high)
            {
                return Err(Fault::invalid(
                    pointer,
                    format!("There is no number from {low} to {high}."),
                    "Give the lower number first.",
                ));
            }
        }
        Ok(())
    }
}

/// Most bounds of a policy; there are fewer fields, but for the metrics of the rules of caution.
const FIELDS_MAX: usize = 256;
/// Stands for every field that is not named.
const ALL_OTHERS: &str = "*";

/// Every field of a policy, also those that are mostly left out.
fn known_fields() -> Vec<String> {
    let named = Policy::contract_review().fields().into_keys();
    // These are left out where there is nothing in them.
    let optional = [
        "mediator",
        "calendar",
        "domain",
        "caution",
        "outcome_sources",
    ];
    let optional = optional.map(|field| format!("ladder.{field}"));
    let others = [
        "estimates.by_metric",
        "estimates.tolerance.unit",
        "vocabulary.topics",
        "vocabulary.recommendations",
        "vocabulary.metrics",
        "vocabulary.similarity_min",
    ];
    let others = others.map(str::to_owned);
    named.chain(optional).chain(others).collect()
}

const TIMES_OF: &str = "ladder.times_by_priority.";

/// The fields of a policy, with the times that hold for each priority, wherever they are written.
fn leaves(policy: &Policy) -> BTreeMap<String, Value> {
    let mut leaves = policy.fields();
    leaves.retain(|field, _| !field.starts_with("ladder.times"));
    for priority in DebatePriority::ALL {
        let times = json!(policy.ladder.times_of(priority));
        for (time, ms) in times.as_object().into_iter().flatten() {
            leaves.insert(
                format!("{TIMES_OF}{}.{time}", priority.as_str()),
                ms.clone(),
            );
        }
    }
    leaves
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

fn refused(pointer: &str, field: &str, bound: Bound, stands: Option<&Value>) -> Fault {
    let stands = stands.map_or_else(|| "not set".to_owned(), Value::to_string);
    let most = match bound {
        Bound::Fixed | Bound::Any => format!("It is {stands}, and no opener may change it."),
        Bound::Lower => format!("It is {stands}; an opener may only lower it."),
        Bound::Higher => format!("It is {stands}; an opener may only raise it."),
        Bound::Within(low, high) => format!("An opener may set it from {low} to {high}."),
    };
    Fault::new(
        ErrorCode::Unauthorized,
        format!("{pointer}/{}", field.replace('.', "/")),
        most,
        "Leave the field out, or ask an operator: they store policies with other bounds (`concord policy put`), and can open the case themselves.",
    )
}

#[cfg(test)]
mod tests;
