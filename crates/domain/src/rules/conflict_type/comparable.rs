//! Whether what a person says of a quantity can be compared with what was held of it.

use concord_wire::Fault;
use concord_wire::payload::{Conflict, ConflictType, Position, Resolution};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::said::check_words;
use super::{ConflictRule, check_value, rule_of, rule_of_result, value_in_words};
use crate::rules::canonical::{
    Allowance, Canonical, canonical_estimate, in_unit_of, number_in_base_unit, same, with_unit,
};

/// How a position states a number.
#[derive(PartialEq)]
struct Stated {
    dimension: String,
    /// It is a number and nothing else. Such a one is none with `%`, though both are without a dimension.
    is_bare: bool,
}

/// A value as it is meant beside what was held: a number without a unit is in the unit of that.
pub(crate) fn meant<'p>(value: &Value, held: impl IntoIterator<Item = &'p Position>) -> Value {
    in_unit_of(value, held.into_iter().map(said_by))
}

/// The value of a position, or else its words.
fn said_by(held: &Position) -> Value {
    held.value.clone().unwrap_or_else(|| json!(held.position))
}

/// Whether numbers were held.
pub(super) fn is_quantity(conflict: &Conflict) -> bool {
    dimensions(&conflict.positions).next().is_some()
}

/// Whether a number is of the same dimension as one that was held.
pub(super) fn is_beside(number: &Value, held: &[Position]) -> bool {
    let own = dimension(number);
    dimensions(held).any(|held| Some(held) == own)
}

/// The dimensions of the numbers that were held.
fn dimensions(held: &[Position]) -> impl Iterator<Item = String> {
    held.iter().filter_map(|held| dimension(&said_by(held)))
}

fn dimension(value: &Value) -> Option<String> {
    number_in_base_unit(value).map(|(_, dimension)| dimension)
}

/// Checks what a person puts in the place of the positions: a value must be one that the result of the case can have, and where the positions
/// are numbers one in a unit of theirs. Words that state a number are held to the same; others stand as they are.
pub(crate) fn check_resolution(
    conflict: &Conflict,
    policy: &Policy,
    positions: &[Position],
    resolution: &Resolution,
) -> Result<(), Fault> {
    check_value(conflict, resolution.value.as_ref())?;
    let Resolution {
        position, value, ..
    } = resolution;
    let said = (position.as_str(), value.as_ref());
    check_words(conflict, policy, positions, said)?;
    let rule = rule_of_quantity(conflict);
    let value = value.as_ref().map(|value| meant(value, positions));
    let as_meant = (position.as_str(), value.as_ref());
    let Some((number, held)) = numbers(rule, policy, positions, as_meant) else {
        return Ok(());
    };
    let fits = match number {
        Some(number) => held.iter().any(|held| held.dimension == number.dimension),
        None => value.is_none(),
    };
    if fits {
        return Ok(());
    }
    Err(incomparable(positions, said))
}

/// Checks that a value can be compared with the positions, where they are numbers.
pub(super) fn check_unit(
    conflict: &Conflict,
    policy: &Policy,
    positions: &[Position],
    value: &Value,
) -> Result<(), Fault> {
    let said = ("", Some(value));
    let numbers = numbers(rule_of_quantity(conflict), policy, positions, said);
    let Some((number, held)) = numbers else {
        return Ok(());
    };
    let fits = |number: Stated| held.iter().any(|held| held.dimension == number.dimension);
    if number.is_some_and(fits) {
        return Ok(());
    }
    Err(incomparable(positions, said))
}

/// What is challenged may be a quantity, too.
fn rule_of_quantity(conflict: &Conflict) -> &'static dyn ConflictRule {
    rule_of(match conflict.kind {
        ConflictType::Challenge => ConflictType::EstimateDisagreement,
        kind => kind,
    })
}

/// Checks what proved right, which all parties are held against for ever: where the positions are numbers it must be one that can be compared
/// with any of them.
pub(crate) fn check_proved(
    conflict: &Conflict,
    policy: &Policy,
    positions: &[Position],
    (position, value): (&str, Option<&Value>),
) -> Result<(), Fault> {
    check_words(conflict, policy, positions, (position, value))?;
    let Some((said, held)) = numbers(rule_of(conflict.kind), policy, positions, (position, value))
    else {
        return Ok(());
    };
    let fits = |said: &Stated| {
        let mut held = held.iter();
        held.any(|held| held.dimension == said.dimension && (held.is_bare || !said.is_bare))
    };
    if said.as_ref().is_some_and(fits) {
        return Ok(());
    }
    let fault = incomparable(positions, (position, value));
    Err(Fault {
        advice: format!(
            "{} Or name the party that held it (`held_by`).",
            fault.advice
        ),
        ..fault
    })
}

/// Whether two people put the same in the place of the positions: the same words, or ones that state the same, and the same value, which is the one
/// that the words state where none is given. `40`, `40.0` and `Risk score: 40` are the same, and so are `4 weeks` and `28 days`; nobody puts words
/// that say something else in the place of the first one's.
pub(crate) fn is_same_resolution(
    conflict: &Conflict,
    policy: &Policy,
    one: &Resolution,
    other: &Resolution,
) -> bool {
    let read = |value: Value| {
        let said = meant(&value, &conflict.positions);
        canonical_estimate(&rule_of_result(conflict).in_result(&said), None)
    };
    let words = |resolution: &Resolution| {
        let words = resolution.position.as_str();
        value_in_words(conflict, policy, words).unwrap_or_else(|| json!(words))
    };
    let value = |resolution: &Resolution| {
        let given = resolution.value.clone();
        given.unwrap_or_else(|| words(resolution))
    };
    let are_same = |one: Value, other: Value| same(&read(one), &read(other), &Allowance::default());
    are_same(words(one), words(other)) && are_same(value(one), value(other))
}

/// What is said and what is held, as numbers; none where not all positions are numbers.
fn numbers(
    rule: &dyn ConflictRule,
    policy: &Policy,
    positions: &[Position],
    (position, value): (&str, Option<&Value>),
) -> Option<(Option<Stated>, Vec<Stated>)> {
    let stated = |held: &Position| match rule.comparable(policy, held) {
        Canonical::Number { dimension, .. } => Some(Stated {
            dimension,
            is_bare: is_bare(held),
        }),
        Canonical::Date(_) | Canonical::Boolean(_) | Canonical::Text(_) => None,
    };
    let first = positions.first().filter(|_| rule.is_of_numbers())?;
    let held = positions.iter().map(stated).collect::<Option<Vec<_>>>()?;
    let said = stated(&Position {
        position: position.to_owned(),
        value: value.cloned(),
        ..first.clone()
    });
    Some((said, held))
}

fn incomparable(positions: &[Position], (position, value): (&str, Option<&Value>)) -> Fault {
    let pointer = value.map_or("/payload/position", |_| "/payload/value");
    let said = value.map_or_else(|| position.to_owned(), Value::to_string);
    let held = positions.iter().map(|held| held.position.as_str());
    let held: Vec<&str> = held.collect();
    Fault::invalid(
        pointer,
        format!(
            "{said} cannot be compared with what was held: {}.",
            held.join(", ")
        ),
        example(positions),
    )
}

/// What can be compared with what was held, for whoever has said something else.
fn example(positions: &[Position]) -> String {
    let held = positions
        .iter()
        .map(said_by)
        .find_map(|held| with_unit(&held));
    let Some((number, unit)) = held else {
        return "Give a number in a unit of what was held.".to_owned();
    };
    let is_enough = meant(&json!(number), positions).is_object();
    match (unit.as_str(), is_enough) {
        ("", _) => format!("Give a number, such as {number}."),
        (unit, true) => {
            format!("Give a value in the same unit, such as {number} or \"{number} {unit}\".")
        }
        (unit, false) => format!("Give a value with its unit, such as \"{number} {unit}\"."),
    }
}

/// Whether it is stated as a number and nothing else.
fn is_bare(position: &Position) -> bool {
    match &position.value {
        Some(Value::String(text)) => text.trim().parse::<f64>().is_ok(),
        Some(value) => value.is_number(),
        None => position.position.trim().parse::<f64>().is_ok(),
    }
}
