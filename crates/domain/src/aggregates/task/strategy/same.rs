//! Results that are compared as values and not as texts.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two results are the same. Numbers may differ by `tolerance`, a share of the larger one; without it they have one value.
pub(super) fn same(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            order_of_numbers(a, b).is_eq() || tolerance > 0.0 && are_near(a, b, tolerance)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, value): (&String, &Value)| {
                b.get(name)
                    .is_some_and(|other| same(value, other, tolerance))
            };
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

fn are_near(a: &Number, b: &Number, tolerance: f64) -> bool {
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else {
        return false;
    };
    // A difference of exactly the tolerance is rounded like the larger number.
    (a - b).abs() <= (tolerance + f64::EPSILON) * a.abs().max(b.abs())
}

/// The order of the values of two numbers, to the last digit: as numbers with fractions, large integers would be the same.
fn order_of_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => order_of_mixed(a, b),
        (None, Some(b)) => order_of_mixed(b, a).reverse(),
        (None, None) => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

/// The order of an integer and a number with a fraction, or beyond what integers can be.
fn order_of_mixed(integer: i128, other: &Number) -> Ordering {
    let other = other.as_f64().unwrap_or_default();
    let whole = other.floor();
    // What is beyond all integers stays there.
    let order = integer.cmp(&(whole as i128));
    order.then(whole.total_cmp(&other))
}

/// An order of all values, so that grouping does not depend on who answered first.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(one), Value::Number(other)) => order_of_numbers(one, other),
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other).map(|(a, b)| order(a, b));
            let first = pairs.find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            // The names are in alphabetical order.
            let mut pairs = one.iter().zip(other);
            let differs = pairs.find_map(|(a, b)| {
                let order = a.0.cmp(b.0).then_with(|| order(a.1, b.1));
                order.is_ne().then_some(order)
            });
            differs.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_numbers_have_a_tolerance_at_any_depth() {
        for (a, b, tolerance, expected) in [
            (
                json!({ "a": 1, "b": [2] }),
                json!({ "b": [2.0], "a": 1 }),
                0.0,
                true,
            ),
            (json!({ "a": 100 }), json!({ "a": 104 }), 0.05, true),
            (json!({ "a": 100 }), json!({ "a": 106 }), 0.05, false),
            (json!([1]), json!([1, 1]), 0.5, false),
            (json!("a"), json!("A"), 1.0, false),
            (json!(null), json!(0), 1.0, false),
            (json!(0.3), json!(0.285), 0.05, true),
            (json!(0.3), json!(0.2849), 0.05, false),
            (
                json!(1_234_567_890_123_456_789_u64),
                json!(1_234_567_890_123_456_790_u64),
                0.0,
                false,
            ),
            (json!(1e-17), json!(9e-17), 0.0, false),
            (json!(1e-17), json!(9e-17), 0.05, false),
            (json!(1e-17), json!(0.99e-17), 0.05, true),
            (json!(0), json!(-0.0), 0.0, true),
            (json!(0.1 + 0.2), json!(0.3), 0.0, false),
            (json!(u64::MAX), json!(1.8446744073709552e19), 0.0, false),
        ] {
            assert_eq!(same(&a, &b, tolerance), expected, "{a} {b}");
        }
        assert_eq!(order(&json!({"a": 2}), &json!({"a": 10})), Ordering::Less);
    }

    #[test]
    fn numbers_are_in_the_order_of_their_values() {
        let sorted = [
            json!(-1e300),
            json!(i64::MIN),
            json!(-2.5),
            json!(-2),
            json!(0.5),
            json!(1),
            json!(1.5),
            // As a number with a fraction, this is 9007199254740992.
            json!(9_007_199_254_740_991_u64),
            json!(9_007_199_254_740_992.0),
            json!(9_007_199_254_740_993_u64),
            json!(u64::MAX),
            json!(1.8446744073709552e19),
            json!(1e300),
        ];
        for (place, one) in sorted.iter().enumerate() {
            for (other_place, other) in sorted.iter().enumerate() {
                assert_eq!(order(one, other), place.cmp(&other_place), "{one} {other}");
            }
        }
    }
}
