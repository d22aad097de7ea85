//! Words and values of one position: what the words state, and whether the value says something else.

use std::mem::discriminant;

use concord_wire::Fault;
use concord_wire::payload::{Conflict, ConflictType, Position};
use concord_wire::policy::Policy;
use serde_json::{Value, json};

use super::comparable::{self, meant};
use super::{check_value, rule_of, rule_of_result};
use crate::rules::canonical::sign::{CURRENCIES, is_dash};
use crate::rules::canonical::{
    Allowance, in_unit_of, is_number, normalise, readable, same, stated_alone, unit_held, with_unit,
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
        format!(
            "The words say {} and the value is {value}.",
            spoken(&stated)
        ),
        "Say the same in both, or leave the value or the words out.",
    ))
}

/// A value for a reader: a number with its unit as one writes it.
fn spoken(value: &Value) -> String {
    match with_unit(value).filter(|_| value.is_object()) {
        Some((number, unit)) => format!("{number} {unit}"),
        None => value.to_string(),
    }
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

/// The value of a position that is held with these words; none where they are held with several.
pub(super) fn value_held(conflict: &Conflict, words: &str) -> Option<Value> {
    let words = normalise(words);
    let same = |held: &&Position| normalise(&held.position) == words;
    let held = conflict.positions.iter().filter(same);
    let mut values = held.filter_map(|held| held.value.as_ref().filter(|value| !value.is_null()));
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.clone())
}

/// The quantity that the words state of what a conflict is about, in the unit of what was held where they name none. None where it cannot be
/// compared with that, and where no number was held.
pub(super) fn quantity_in_words(conflict: &Conflict, words: &str) -> Option<Value> {
    let stated = number_in_words(conflict, words)?;
    let stated = meant(&stated, &conflict.positions);
    comparable::is_beside(&stated, &conflict.positions).then_some(stated)
}

/// The number that the words state of what a conflict is about, with its unit: `Operating margin: 28 %` and `28 % operating margin` state 28 %, and
/// `28 % more than before`, `< 28 %` and `- 28 %` nothing.
pub(super) fn number_in_words(conflict: &Conflict, words: &str) -> Option<Value> {
    let values = conflict
        .positions
        .iter()
        .filter_map(|held| held.value.as_ref());
    let units: Vec<String> = values.filter_map(unit_held).collect();
    number_beside(&conflict.subject, &units, words)
}

/// The same of a subject of which nobody holds a number yet.
pub(crate) fn number_of(subject: &str, words: &str) -> Option<Value> {
    number_beside(subject, &[], words)
}

fn number_beside(subject: &str, units: &[String], words: &str) -> Option<Value> {
    let words = readable(words);
    let subject = conservative::words(subject);
    let is_of_it = |word: &str| {
        BEFORE_A_NUMBER.contains(&word) || subject.split_whitespace().any(|part| part == word)
    };
    starts(&words)?.into_iter().find_map(|start| {
        let (label, number) = words.split_at_checked(start)?;
        label_words(label)?
            .into_iter()
            .all(is_of_it)
            .then_some(())?;
        without_name(number, &subject, units)
    })
}

/// Most words of a unit before its number: `US dollar 90`.
const UNIT_WORDS_MAX: usize = 2;

/// Where the first number in the words may begin, with the unit that may stand before it.
fn starts(words: &str) -> Option<Vec<usize>> {
    let before = words.get(..words.find(|c: char| c.is_ascii_digit())?)?;
    let spaces = before.rmatch_indices(' ').map(|(space, _)| space + 1);
    let mut starts: Vec<usize> = spaces.chain([0]).take(UNIT_WORDS_MAX + 1).collect();
    starts.reverse();
    let is_of_number = |c: char| c == '-' || CURRENCIES.contains(&c);
    starts.push(before.trim_end_matches(is_of_number).len());
    Some(starts)
}

/// The words before a number. None where a sign among them says that it is not just this number (`<`, `~`), or may be its minus (`growth - 2 %`), and
/// where it is part of a word (`p1`, `pre-2020`).
pub(super) fn label_words(label: &str) -> Option<Vec<&str>> {
    if label.ends_with(char::is_alphanumeric) || label.trim_end().ends_with(is_dash) {
        return None;
    }
    let words = label
        .split_whitespace()
        .map(|word| word.trim_matches(is_punctuation))
        .filter(|word| !word.chars().all(is_dash))
        .flat_map(|word| word.split(['_', '-', '/']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let has_sign = words.iter().any(|word| word.contains(is_sign));
    (!has_sign).then_some(words)
}

/// What may stand around a word and says nothing of a number.
fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        ':' | '=' | ',' | '.' | ';' | '(' | ')' | '[' | ']' | '*' | '`' | '%' | '"' | '\''
    ) || matches!(c, '\u{2018}'..='\u{201f}' | '：' | '，' | '（' | '）')
}

/// What is no part of a word: a comparison, an arrow, another sign.
fn is_sign(c: char) -> bool {
    let is_of_mathematics = matches!(c, '\u{2190}'..='\u{22ff}' | '\u{2a00}'..='\u{2aff}');
    let is_wide = matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{301c}');
    let is_other = c.is_ascii() || is_of_mathematics || is_wide || matches!(c, '±' | '…');
    is_other && !c.is_alphanumeric()
}

/// The number at the beginning of the words, with its unit; none where something else follows than the name of what it is of.
fn without_name(words: &str, subject: &str, units: &[String]) -> Option<Value> {
    let mut number = words;
    loop {
        if let Some(stated) = stated_alone(number, units) {
            return Some(stated);
        }
        let (rest, last) = number.rsplit_once(' ')?;
        let is_of_name = subject.split_whitespace().any(|part| part == last);
        number = is_of_name.then_some(rest.trim_end())?;
    }
}
