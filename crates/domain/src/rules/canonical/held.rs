//! A number without a unit, beside numbers that have one.

use serde_json::{Value, json};

use super::unit::{Units, is_currency};
use super::{is_digit, name_before, normalise, number_and_name, number_and_unit, readable};

const PERCENT: f64 = 0.01;

/// A number, and the name of its unit; empty where it has none.
struct Stated {
    number: f64,
    unit: String,
}

impl Stated {
    fn of(value: &Value) -> Option<Self> {
        let bare = |number: f64| Self {
            number,
            unit: String::new(),
        };
        match value {
            Value::Number(number) => number.as_f64().map(bare),
            Value::String(text) => {
                let words = readable(text);
                let (number, unit) = number_and_unit(&words, Units::Scaled)?;
                let unit = unit.into_owned();
                Units::Scaled.knows(&unit).then_some(Self { number, unit })
            }
            Value::Object(fields) => {
                let inner = fields.get("value").filter(|inner| !inner.is_object())?;
                let stated = Self::of(inner)?;
                let unit = fields.get("unit").and_then(Value::as_str);
                let unit = unit.map(str::trim).filter(|unit| !unit.is_empty());
                Some(Self {
                    unit: unit.map_or(stated.unit, str::to_owned),
                    ..stated
                })
            }
            _ => None,
        }
    }

    fn is_percent(&self) -> bool {
        Units::Scaled.of(&self.unit) == (String::new(), PERCENT)
    }

    /// Whether it is a part of one; what is counted in times is not.
    fn is_share(&self) -> bool {
        let is_times = matches!(normalise(&self.unit).as_str(), "x" | "times");
        !is_times && Units::Scaled.of(&self.unit) == (String::new(), 1.0)
    }

    /// A number in the unit of this one.
    fn with(&self, number: f64) -> Value {
        json!({ "value": number, "unit": self.unit })
    }
}

/// Whether it states a number, alone or with a unit.
pub(crate) fn is_number(value: &Value) -> bool {
    Stated::of(value).is_some()
}

/// The number and the name of the unit that are stated; the name is empty where there is none.
pub(crate) fn with_unit(value: &Value) -> Option<(f64, String)> {
    Stated::of(value).map(|stated| (stated.number, stated.unit))
}

/// The dimension of the unit in which a value is held. Of a text what stands before the number may be no unit.
pub(crate) fn unit_held(value: &Value) -> Option<String> {
    let dimension = |unit: &str| Units::Scaled.of(unit).0;
    match value {
        Value::Object(fields) => fields.get("unit").and_then(Value::as_str).map(dimension),
        Value::String(text) => {
            let words = readable(text);
            let begins = words.trim_start_matches('-').starts_with(is_digit);
            let (_, unit) = number_and_name(&words).filter(|_| begins)?;
            Some(dimension(&unit))
        }
        _ => None,
    }
}

/// The number that these [readable] words are and nothing else, beside its unit where they name one: one that is known, or of a dimension that was
/// [held](unit_held). Before a number stands a currency, or a unit that was held and says no place: `USD 90` and `mg 75` are amounts, and `week 4`
/// is the fourth.
pub(crate) fn stated_alone(words: &str, held: &[String]) -> Option<Value> {
    let (number, unit) = number_and_name(words)?;
    let is_known = Units::Scaled.knows(&unit);
    let is_held = !is_known && held.contains(&Units::Scaled.of(&unit).0);
    let before = words.split(is_digit).next().unwrap_or_default();
    let is_apart = !before.ends_with(char::is_alphabetic);
    let name = name_before(words);
    let fits = name.is_empty() || is_currency(name) || (is_held && is_apart);
    // A dash with a space after it may stand between two words.
    let is_clear = (is_known || is_held) && fits && !before.contains("- ");
    is_clear.then(|| match unit.is_empty() {
        true => json!(number),
        false => json!({ "value": number, "unit": unit }),
    })
}

/// A number without a unit as it is meant beside what was held: in the unit of that. Beside percent or a share it is a share below 1 and
/// percent above it; beside a ratio above 1 it is in that. Anything else stays as it is, also where several units were held.
pub(crate) fn in_unit_of(value: &Value, held: impl IntoIterator<Item = Value>) -> Value {
    let Some(plain) = Stated::of(value).filter(|stated| stated.unit.is_empty()) else {
        return value.clone();
    };
    let held = held.into_iter().filter_map(|held| Stated::of(&held));
    let held: Vec<Stated> = held.filter(|held| !held.unit.is_empty()).collect();
    let Some(first) = held.first() else {
        return value.clone();
    };
    if held.iter().all(|held| held.is_percent() || held.is_share()) {
        return beside_shares(&plain, &held).unwrap_or_else(|| value.clone());
    }
    let is_first = |held: &Stated| normalise(&held.unit) == normalise(&first.unit);
    if held.iter().all(is_first) {
        return first.with(plain.number);
    }
    value.clone()
}

fn beside_shares(plain: &Stated, held: &[Stated]) -> Option<Value> {
    let percent = held.iter().find(|held| held.is_percent());
    let share = held.iter().find(|held| held.is_share());
    let size = plain.number.abs();
    // Beside 0.5 % the number 0.4 is no share of 40 %.
    let is_tiny = share.is_none() && held.iter().any(|held| held.number.abs() < 1.0);
    // A current ratio of 1.5 is no part of one, and nobody states the next one as percent.
    let is_above_one = percent.is_none() && held.iter().any(|held| held.number.abs() > 1.0);
    let is_meant_as_share =
        is_above_one || (!is_tiny && (size < 1.0 || (size == 1.0 && percent.is_none())));
    match (percent, share) {
        (_, Some(share)) if is_meant_as_share => Some(share.with(plain.number)),
        (Some(percent), _) if is_meant_as_share => {
            Some(percent.with(rounded(plain.number / PERCENT)))
        }
        (Some(percent), _) => Some(percent.with(plain.number)),
        (None, Some(share)) => Some(share.with(rounded(plain.number * PERCENT))),
        (None, None) => None,
    }
}

/// Without what the conversion of a binary fraction adds: 28 and no 28.000000000000004.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_meant_in_the_unit_of_what_was_held() {
        let of = |value: f64, unit: &str| json!({ "value": value, "unit": unit });
        let [percent, fraction, million] =
            [of(25.0, "%"), of(0.25, "fraction"), of(12.0, "USD million")];
        for (value, held, expected) in [
            (json!(28), vec![percent.clone()], of(28.0, "%")),
            (json!("28"), vec![percent.clone()], of(28.0, "%")),
            (json!(0.28), vec![percent.clone()], of(28.0, "%")),
            (json!(1), vec![percent.clone()], of(1.0, "%")),
            (json!(0.4), vec![of(0.5, "%")], of(0.4, "%")),
            (json!(28), vec![json!("25 %")], of(28.0, "%")),
            (json!(28), vec![json!(25), percent.clone()], of(28.0, "%")),
            (json!(0.28), vec![fraction.clone()], of(0.28, "fraction")),
            (json!(28), vec![fraction.clone()], of(0.28, "fraction")),
            (json!(28), vec![percent.clone(), fraction], of(28.0, "%")),
            (json!(10), vec![million.clone()], of(10.0, "USD million")),
            (json!(10), vec![of(8.0, "x")], of(10.0, "x")),
            (json!(1.6), vec![of(1.5, "ratio")], of(1.6, "ratio")),
            (json!("1.6"), vec![of(1.5, "ratio")], of(1.6, "ratio")),
            (
                json!(28),
                vec![of(0.9, "ratio"), of(1.8, "ratio")],
                of(28.0, "ratio"),
            ),
            (json!(0.6), vec![of(-1.5, "ratio")], of(0.6, "ratio")),
            (json!(28), vec![of(0.9, "ratio")], of(0.28, "ratio")),
            (
                json!(120),
                vec![of(1.5, "ratio"), percent.clone()],
                of(120.0, "%"),
            ),
            (json!(12_000), vec![of(1e4, "shares")], of(12e3, "shares")),
            (json!(0.3), vec![of(0.2, "share")], of(0.3, "share")),
            (json!(10), vec![million, of(9.0, "days")], json!(10)),
            (json!(10), vec![json!(9), json!("net")], json!(10)),
            (
                json!(28),
                vec![json!("about 25"), json!("25 seats")],
                json!(28),
            ),
            (of(3.0, "days"), vec![percent.clone()], of(3.0, "days")),
            (
                json!("about the same"),
                vec![percent.clone()],
                json!("about the same"),
            ),
            (Value::Null, vec![percent], Value::Null),
        ] {
            assert_eq!(
                in_unit_of(&value, held.clone()),
                expected,
                "{value} {held:?}"
            );
        }
    }
}
