//! Compares positions: when two of them are the same.
//!
//! By their value where they have one: numbers with units and a tolerance, dates in any usual form, booleans, texts
//! without regard to case, spacing and quotation marks. Else by their words, normalised in the same way.

use serde_json::Value;

mod date;

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
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let joined = words.join(" ");
    joined
        .trim_matches(|c: char| {
            matches!(
                c,
                '"' | '\'' | '\u{201c}' | '\u{201d}' | '.' | ',' | ';' | ' '
            )
        })
        .to_owned()
}

/// The dimension of a unit, and the factor to the dimension's base unit. Months and years count as
/// 30 and 360 days (the 30/360 convention), so that a year is twelve months.
fn unit(name: &str) -> (String, f64) {
    let name = normalise(name);
    let (dimension, factor) = match name.trim_end_matches('s') {
        "" => ("", 1.0),
        "%" | "percent" | "per cent" | "pct" => ("", 0.01),
        "bp" | "basis point" => ("", 0.000_1),
        "thousand" | "k" => ("", 1_000.0),
        "million" | "m" => ("", 1_000_000.0),
        "second" | "sec" => ("time", 1.0 / 86_400.0),
        "minute" | "min" => ("time", 1.0 / 1_440.0),
        "hour" | "h" => ("time", 1.0 / 24.0),
        "day" | "calendar day" | "d" => ("time", 1.0),
        "week" => ("time", 7.0),
        "month" => ("time", 30.0),
        "quarter" => ("time", 90.0),
        "year" | "yr" | "annum" => ("time", 360.0),
        "usd" | "$" | "us$" | "dollar" | "us dollar" => ("usd", 1.0),
        "eur" | "€" | "euro" => ("eur", 1.0),
        "gbp" | "£" | "pound" => ("gbp", 1.0),
        other => return (other.to_owned(), 1.0),
    };
    (dimension.to_owned(), factor)
}

/// A value in comparable form, with its unit if it has one.
pub fn canonical(value: &Value, unit_name: Option<&str>) -> Canonical {
    match value {
        Value::Bool(flag) => Canonical::Boolean(*flag),
        Value::Number(number) => {
            in_base_unit(number.as_f64().unwrap_or(0.0), unit_name.unwrap_or(""))
        }
        Value::String(text) => canonical_text(text, unit_name),
        Value::Object(fields) if fields.contains_key("value") => {
            let inner = fields.get("value").unwrap_or(&Value::Null);
            let unit_name = fields.get("unit").and_then(Value::as_str).or(unit_name);
            // A value nested in a value is not supported. Comparing its text keeps this function
            // from recursing without bound.
            if inner.is_object() {
                Canonical::Text(inner.to_string())
            } else {
                canonical(inner, unit_name)
            }
        }
        other => Canonical::Text(other.to_string()),
    }
}

fn in_base_unit(value: f64, unit_name: &str) -> Canonical {
    let (dimension, factor) = unit(unit_name);
    Canonical::Number {
        value: value * factor,
        dimension,
    }
}

fn canonical_text(text: &str, unit_name: Option<&str>) -> Canonical {
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
    number_in(&words, unit_name).unwrap_or(Canonical::Text(words))
}

/// Reads `30 days`, `$1,000,000`, `2.5 %`, `usd 500`.
fn number_in(words: &str, unit_name: Option<&str>) -> Option<Canonical> {
    let is_digit = |c: char| c.is_ascii_digit();
    let start = words.find(is_digit)?;
    let end = words.rfind(is_digit)? + 1;
    let (before, rest) = words.split_at_checked(start)?;
    let (digits, after) = rest.split_at_checked(end - start)?;
    if !digits
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'))
    {
        return None;
    }
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let sign = if before.trim_end().ends_with('-') {
        -1.0
    } else {
        1.0
    };
    let mut names = [before.trim().trim_end_matches('-').trim(), after.trim()]
        .into_iter()
        .filter(|n| !n.is_empty());
    let (name, surplus) = (names.next(), names.next());
    if surplus.is_some() || name.is_some_and(|name| name.contains(' ') && unit(name).1 == 1.0) {
        return None;
    }
    Some(in_base_unit(
        sign * number,
        name.or(unit_name).unwrap_or(""),
    ))
}

/// Whether two values are the same. Numbers may differ by `tolerance`, a share of the larger one.
pub fn same(a: &Canonical, b: &Canonical, tolerance: f64) -> bool {
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
        ) => d == e && (a - b).abs() <= tolerance * a.abs().max(b.abs()) + f64::EPSILON,
        _ => a == b,
    }
}

/// Groups values that are the same. Returns the index of the group for each item; groups are
/// numbered in the order of their values.
///
/// "Nearly the same" is not transitive. Therefore numbers are sorted, and a number joins the group
/// below it when it is the same as the smallest number of that group. So the groups do not depend
/// on the order of the items.
pub fn group(items: &[Canonical], tolerance: f64) -> Vec<usize> {
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
            Some(first) if same(first, item, tolerance) => {}
            previous => {
                current += usize::from(previous.is_some());
                first = Some(item);
            }
        }
        if let Some(slot) = groups.get_mut(index) {
            *slot = current;
        }
    }
    groups
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
        ) => d.cmp(e).then(a.total_cmp(b)),
        (Boolean(a), Boolean(b)) => a.cmp(b),
        (Date(a), Date(b)) | (Text(a), Text(b)) => a.cmp(b),
        _ => kind(a).cmp(&kind(b)),
    }
}

#[cfg(test)]
mod tests;
