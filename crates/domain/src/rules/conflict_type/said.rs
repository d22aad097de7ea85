//! Words and values of one position: what the words state, and whether the value says something else.

use std::mem::discriminant;

use concord_wire::Fault;
use concord_wire::payload::{Conflict, ConflictType, Position};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::comparable::{self, meant};
use super::{check_value, rule_of, rule_of_result};
use crate::rules::canonical::{
    Allowance, in_unit_of, is_number, normalise, number_with_unit, same,
};
use crate::rules::conservative;

/// What may stand before a number that the words state, besides the name of what it is of.
const BEFORE_A_NUMBER: [&str; 9] = [
    "a", "an", "the", "of", "is", "score", "value", "estimate", "risk",
];

/// Checks that a value is not another one than the words beside it state. Words that state none of the matter stand as they are.
pub(crate) fn check_words(
    conflict: &Conflict,
    policy: &Policy,
    positions: &[Position],
    (words, value): (&str, Option<&Value>),
) -> Result<(), Fault> {
    let rule = rule_of_result(conflict);
    let value = value.filter(|value| !value.is_null());
    let stated = rule.plain_words(policy, conflict, words);
    let (Some(value), Some(stated)) = (value, stated) else {
        return Ok(());
    };
    // Both as they are meant: 28 and 0.28 are what the words `28 %` say, also where the words have no unit and the value has one.
    let read = in_unit_of(value, [stated.clone()]);
    let mut readings = [
        meant(&stated, positions),
        in_unit_of(&stated, [read.clone()]),
    ]
    .into_iter();
    if readings.any(|stated| !differ(conflict, policy, &stated, &read)) {
        return Ok(());
    }
    Err(Fault::invalid(
        "/payload/value",
        format!("The words say {stated} and the value is {value}."),
        "Say the same in both, or leave the value or the words out.",
    ))
}

/// Whether two values are of one kind and not the same.
fn differ(conflict: &Conflict, policy: &Policy, one: &Value, other: &Value) -> bool {
    let of_result = rule_of_result(conflict);
    let rule = match conflict.kind {
        // Units of estimates may have a scale, and so may those of facts and of what is challenged.
        ConflictType::Challenge | ConflictType::FactualDisagreement
            if !of_result.is_about_the_result() =>
        {
            rule_of(ConflictType::EstimateDisagreement)
        }
        _ => of_result,
    };
    let Some(held) = conflict.positions.first() else {
        return false;
    };
    let read = |value: &Value| {
        let position = Position {
            value: Some(of_result.in_result(value)),
            ..held.clone()
        };
        rule.comparable(policy, &position)
    };
    let allowed = Allowance::relative(1e-9);
    let (one, other) = (read(one), read(other));
    discriminant(&one) == discriminant(&other) && !same(&one, &other, &allowed)
}

/// Checks what a party says: a value must be one that the result of the case can have, and where the positions are numbers one in a unit of
/// theirs. A text that states no number is as good as words.
pub(crate) fn check_party(
    conflict: &Conflict,
    policy: &Policy,
    (words, value): (Option<&str>, Option<&Value>),
) -> Result<(), Fault> {
    let positions = &conflict.positions;
    let value = value.filter(|value| !value.is_null());
    // Who keeps its position may repeat it as it was shown, whatever its words are.
    let is_as_shown = |held: &Position| {
        held.value.as_ref() == value && words.is_some_and(|words| held.position == words)
    };
    if !positions.iter().any(is_as_shown) {
        let words = words.unwrap_or_default();
        check_words(conflict, policy, positions, (words, value))?;
    }
    let is_text =
        |value: &Value| value.is_string() || value.get("value").is_some_and(Value::is_string);
    let is_free = |value: &Value| is_text(value) && !is_number(value);
    let in_words = || words.map(|words| json!(words));
    let said = value.cloned().or_else(in_words);
    let Some(said) = said.filter(|said| !is_free(said)) else {
        return Ok(());
    };
    check_value(conflict, value)?;
    let said = meant(&said, positions);
    comparable::check_unit(conflict, policy, positions, &said).map_err(|fault| match value {
        Some(_) => fault,
        None => Fault {
            pointer: "/payload/revised_position".to_owned(),
            ..fault
        },
    })
}

/// The quantity that the words state of what a conflict is about, in the unit of what was held where they name none. None where it cannot be
/// compared with that, and where no number was held.
pub(super) fn quantity_in_words(conflict: &Conflict, words: &str) -> Option<Value> {
    let stated = number_in_words(&conflict.subject, words)?;
    let stated = number_with_unit(&meant(&stated, &conflict.positions))?;
    comparable::is_beside(&stated, &conflict.positions).then_some(stated)
}

/// The number that the words state of this subject, with its unit: `Operating margin: 28 %` and `28 % operating margin` state 28 %, and
/// `28 % more than before` nothing.
pub(super) fn number_in_words(subject: &str, words: &str) -> Option<Value> {
    let words = normalise(words);
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '$' | '€' | '£');
    let (label, number) = words.split_at_checked(words.find(is_part)?)?;
    let subject = conservative::words(subject);
    let number = without_name(number, &subject)?;
    let number = match label.ends_with('-') {
        true => json!(format!("-{number}")),
        false => json!(number),
    };
    let is_of_it = |word: &str| {
        BEFORE_A_NUMBER.contains(&word) || subject.split_whitespace().any(|part| part == word)
    };
    let mut label = label
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    label.all(is_of_it).then_some(number)
}

/// The number at the beginning of the words, with its unit; none where something else follows than the name of what it is of.
fn without_name<'w>(words: &'w str, subject: &str) -> Option<&'w str> {
    let mut number = words;
    while !is_number(&json!(number)) {
        let (rest, last) = number.rsplit_once(' ')?;
        let is_of_name = subject.split_whitespace().any(|part| part == last);
        number = is_of_name.then_some(rest.trim_end())?;
    }
    Some(number)
}
