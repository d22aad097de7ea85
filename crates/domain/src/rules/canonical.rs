//! Compares positions: when two of them are the same.
//!
//! By their value where they have one: numbers with units and a tolerance, dates in any usual form,
//! booleans, texts without regard to case, spacing and quotation marks. Else by their words,
//! normalised in the same way.

use std::borrow::Cow;

use concord_wire::policy::{Tolerance, plain_form};
use serde_json::Value;

mod date;
pub(crate) mod digits;
mod held;
pub(crate) mod sign;
mod unit;

pub(crate) use held::{in_unit_of, is_number, rounded, stated_alone, unit_held, with_unit};
use unit::Units;

use crate::rules::size_budget::truncate;

/// A value in the form in which values are compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Canonical {
    /// A number in the base unit of its dimension.
    Number {
        /// The number.
        value: f64,
        /// The dimension, or the unit itself where it is unknown; empty for a number without a
        /// unit.
        dimension: String,
    },
    /// A day, `YYYY-MM-DD`.
    Date(String),
    /// Yes or no.
    Boolean(bool),
    /// A text, normalised.
    Text(String),
}

/// Normalises a text: lower case, single spaces, without quotation marks at the ends and without a
/// final full stop. A shortened text is compared by its digest only, which was made of all its
/// words in this form.
pub fn normalise(text: &str) -> String {
    if let Some(identity) = truncate::identity(text) {
        return identity;
    }
    plain_form(text)
}

/// A text in the form in which numbers are read from it: [normalised](normalise), and with plain signs before them.
pub(crate) fn readable(text: &str) -> String {
    normalise(&sign::plain(text))
}

/// A value in comparable form, with its unit if it has one.
pub fn canonical(value: &Value, unit_name: Option<&str>) -> Canonical {
    with_units(value, unit_name, Units::Single)
}

/// The value of an estimate in comparable form: `USD million` is a million of the unit `USD`.
pub fn canonical_estimate(value: &Value, unit_name: Option<&str>) -> Canonical {
    with_units(value, unit_name, Units::Scaled)
}

fn with_units(value: &Value, unit_name: Option<&str>, units: Units) -> Canonical {
    match value {
        Value::Bool(flag) => Canonical::Boolean(*flag),
        Value::Number(number) => {
            let name = unit_name.unwrap_or("");
            in_base_unit(number.as_f64().unwrap_or(0.0), name, units)
        }
        Value::String(text) => canonical_text(text, unit_name, units),
        Value::Object(fields) if fields.contains_key("value") => {
            let inner = fields.get("value").unwrap_or(&Value::Null);
            let unit_name = fields.get("unit").and_then(Value::as_str).or(unit_name);
            // A value nested in a value is not supported. Comparing its text keeps this function
            // from recursing without bound.
            if inner.is_object() {
                Canonical::Text(inner.to_string())
            } else {
                with_units(inner, unit_name, units)
            }
        }
        other => Canonical::Text(other.to_string()),
    }
}

/// The number that a value is, in the base unit of its dimension, and that; none of anything else.
pub(crate) fn number_in_base_unit(value: &Value) -> Option<(f64, String)> {
    match canonical_estimate(value, None) {
        Canonical::Number { value, dimension } => Some((value, dimension)),
        Canonical::Date(_) | Canonical::Boolean(_) | Canonical::Text(_) => None,
    }
}

fn in_base_unit(value: f64, unit_name: &str, units: Units) -> Canonical {
    let (dimension, factor) = units.of(unit_name);
    Canonical::Number {
        value: value * factor,
        dimension,
    }
}

fn canonical_text(text: &str, unit_name: Option<&str>, units: Units) -> Canonical {
    if let Some(identity) = truncate::identity(text) {
        return Canonical::Text(identity);
    }
    let words = normalise(text);
    match words.as_str() {
        "true" | "yes" => return Canonical::Boolean(true),
        "false" | "no" => return Canonical::Boolean(false),
        _ => {}
    }
    if let Some(day) = date::parse(&words) {
        return Canonical::Date(day);
    }
    let number = || number_in(&readable(text), unit_name, units);
    let has_digits = words.contains(is_digit);
    let number = has_digits.then(number).flatten();
    number.unwrap_or(Canonical::Text(words))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Reads `30 days`, `$1,000,000`, `2.5 %`, `usd 500`, `usd 1 million`.
fn number_in(words: &str, unit_name: Option<&str>, units: Units) -> Option<Canonical> {
    let (number, name) = number_and_unit(words, units)?;
    let name = Some(&*name).filter(|name| !name.is_empty());
    Some(in_base_unit(
        number,
        name.or(unit_name).unwrap_or(""),
        units,
    ))
}

/// The number in these words, and the name of its unit; empty where they give none. Several words are one only where they are known. A word before
/// the number is one only if it is a currency: `ISO 27001`, `HTTP 502` and `year 2026` are names.
fn number_and_unit(words: &str, units: Units) -> Option<(f64, Cow<'_, str>)> {
    let (number, name) = number_and_name(words)?;
    let before = name_before(words);
    let is_sign = || !before.contains(char::is_alphabetic) && units.knows(before);
    let is_amount = before.is_empty() || unit::is_currency(before) || is_sign();
    let is_unit = !name.contains(' ') || units.knows(&name);
    (is_amount && is_unit).then_some((number, name))
}

/// What stands before the number in these words, without its minus.
fn name_before(words: &str) -> &str {
    let before = words.split(is_digit).next().unwrap_or_default();
    before.trim().trim_matches('-').trim()
}

/// The number in these words, and what stands beside it: nothing, words before it or after it, or a currency before it and a scale after it.
fn number_and_name(words: &str) -> Option<(f64, Cow<'_, str>)> {
    let start = words.find(is_digit)?;
    let end = words.rfind(is_digit)? + 1;
    let (before, rest) = words.split_at_checked(start)?;
    let (digits, after) = rest.split_at_checked(end - start)?;
    if !digits
        .chars()
        .all(|c| is_digit(c) || matches!(c, ',' | '.'))
    {
        return None;
    }
    let number = digits::number(digits)?;
    let (before, after) = (before.trim(), after.trim());
    let is_negative = before.starts_with('-') || before.ends_with('-');
    let name = match (name_before(words), after) {
        ("", name) | (name, "") => Cow::Borrowed(name),
        (currency, scale) if unit::is_currency(currency) && unit::is_scale(scale) => {
            Cow::Owned(format!("{scale} {currency}"))
        }
        _ => return None,
    };
    Some((if is_negative { -number } else { number }, name))
}

/// How far two numbers of one dimension may differ and still be the same: by whichever allows more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    /// A share of the larger number.
    pub relative: f64,
    /// A difference, in the base unit of `dimension`.
    pub absolute: f64,
    /// The dimension of the numbers for which `absolute` holds.
    pub dimension: String,
}

impl Allowance {
    /// What allows a share of the larger number.
    pub fn relative(share: f64) -> Self {
        Self {
            relative: share,
            ..Self::default()
        }
    }

    /// What a policy allows.
    pub fn of_policy(tolerance: &Tolerance) -> Self {
        let (dimension, factor) = Units::Scaled.of(tolerance.unit.as_deref().unwrap_or(""));
        // A little more, because 30 % is not exactly three percentage points above 27 % in binary.
        let wider = |allowed: f64| allowed * (1.0 + 1e-9);
        Self {
            relative: wider(tolerance.relative),
            absolute: wider(tolerance.absolute * factor),
            dimension,
        }
    }

    fn between(&self, a: f64, b: f64, dimension: &str) -> f64 {
        let relative = self.relative * a.abs().max(b.abs());
        if self.absolute > relative && self.dimension == dimension {
            self.absolute
        } else {
            relative
        }
    }
}

/// Whether two values are the same. Numbers may differ as far as `allowed` says.
pub fn same(a: &Canonical, b: &Canonical, allowed: &Allowance) -> bool {
    match (a, b) {
        (
            Canonical::Number {
                value: a,
                dimension: d,
            },
            Canonical::Number {
                value: b,
                dimension: e,
            },
        ) => {
            by_dimension(d, e).is_eq() && (a - b).abs() <= allowed.between(*a, *b, d) + f64::EPSILON
        }
        _ => a == b,
    }
}

/// Groups values that are the same. Returns the index of the group for each item; groups are
/// numbered in the order of their values.
///
/// "Nearly the same" is not transitive. Therefore numbers are sorted, and a number joins the group
/// below it when it is the same as the smallest number of that group. So the groups do not depend
/// on the order of the items.
pub fn group(items: &[Canonical], allowed: &Allowance) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| match (items.get(*a), items.get(*b)) {
        (Some(a), Some(b)) => total_order(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let mut groups = vec![0; items.len()];
    let mut first: Option<&Canonical> = None;
    let mut current = 0;
    for index in order {
        let Some(item) = items.get(index) else {
            continue;
        };
        match first {
            Some(first) if same(first, item, allowed) => {}
            previous => {
                current += usize::from(previous.is_some());
                first = Some(item);
            }
        }
        if let Some(slot) = groups.get_mut(index) {
            *slot = current;
        }
    }
    debug_assert!(
        groups.iter().all(|group| *group <= current),
        "groups are numbered from 0"
    );
    groups
}

/// The order of two dimensions. Most numbers have no unit, and the C library compares two empty texts more slowly than two words: it loads from where
/// an empty `String` points to, which is no memory, and the processor has to find out. In a profile it was six percent of the facilitator.
fn by_dimension(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    a.cmp(b)
}

fn total_order(a: &Canonical, b: &Canonical) -> std::cmp::Ordering {
    use Canonical::{Boolean, Date, Number, Text};
    let kind = |c: &Canonical| match c {
        Boolean(_) => 0,
        Number { .. } => 1,
        Date(_) => 2,
        Text(_) => 3,
    };
    match (a, b) {
        (
            Number {
                value: a,
                dimension: d,
            },
            Number {
                value: b,
                dimension: e,
            },
        ) => by_dimension(d, e).then(a.total_cmp(b)),
        (Boolean(a), Boolean(b)) => a.cmp(b),
        (Date(a), Date(b)) | (Text(a), Text(b)) => a.cmp(b),
        _ => kind(a).cmp(&kind(b)),
    }
}

#[cfg(test)]
mod tests;
